#pragma once
// From a job file to the training graph of its model.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/graph/training_graph.hpp"
#include "framework/options/option.hpp"

namespace altiplano {

/// What parallel.recompute names; nothing for `none` and `auto`.
std::vector<std::string> wanted_recompute(const Options& options);

/// For `batch` samples of `sequence` tokens a step. `recomputed`: these layers, instead of what the job file says.
Result<TrainingGraph> build_job_graph(const Options& options, int64_t batch, int64_t sequence,
                                      const std::optional<std::set<std::string>>& recomputed = {});

}  // namespace altiplano
