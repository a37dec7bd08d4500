#pragma once
// Training steps that are run to be measured and of which nothing is kept.
#include "framework/runtime/data/batch_source.hpp"
#include "framework/runtime/rank_model.hpp"
#include "framework/runtime/step_profile.hpp"

namespace altiplano {

/// `steps` training steps from the initial weights, after one that warms up and is not counted. The profile points into
/// the model's program.
Result<StepProfile> measure_steps(const Job& job, const BatchSource& source, RankModel& model, int64_t steps);

}  // namespace altiplano
