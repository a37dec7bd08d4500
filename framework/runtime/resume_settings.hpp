#pragma once
// What a checkpoint remembers of the job that wrote it, besides the model: settings by key, so that a resume under
// other ones is either refused (the saved state would not mean the same) or said aloud. The plan is no part of it: any
// plan goes on from any other.
#include <map>
#include <string>
#include <vector>

#include "framework/runtime/data/batch_source.hpp"
#include "framework/runtime/job.hpp"

namespace altiplano {

using Settings = std::map<std::string, std::string>;

/// Options of train, data, optimizer, lr_scheduler and model that have a value, the global batch of the plan, and what
/// the training file holds ("data.train contents": tokenizer, tokens, a sum over samples of them).
Result<Settings> training_settings(const Job& job, const BatchSource& source);

/// The JSON object that CheckpointInfo::state is.
std::string state_with(const Settings& settings);
/// Empty for checkpoints that remember none.
Settings settings_of(const std::string& state);

/// What a resume has to say about `now` against `saved`, where `step` is the checkpoint's. Refusals (all of them, one
/// per line, with key, both values and the way out) for what the saved state cannot go on with; else a notice per other
/// key that changed, with what follows from it. Keys without a meaning for the state are not mentioned.
Result<std::vector<std::string>> compare_settings(const Settings& saved, const Settings& now, const Options& options,
                                                  int64_t step);

}  // namespace altiplano
