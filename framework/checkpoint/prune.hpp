#pragma once
// Removing old checkpoints by hand, by the rules a run removes them by. What goes is decided first and can be shown.
#include <string>
#include <vector>

#include "framework/checkpoint/restore.hpp"
#include "framework/checkpoint/retention.hpp"

namespace altiplano {

struct PrunableCheckpoint {
  std::string path;
  int64_t step = 0, bytes = 0;
};

struct PrunePlan {
  std::vector<PrunableCheckpoint> kept, removed;  ///< newest first
  std::vector<SkippedCheckpoint> damaged;         ///< counted by no rule; with their reasons
  std::vector<SkippedCheckpoint> misnamed;        ///< of another step than their name says; never removed
  bool removes_damaged = false;
};

/// Each run of the directory by itself. The newest checkpoint of a run whose every byte is as it was written stays,
/// whatever the rule says; a run that has none loses nothing. What a symbolic link holds stays (is_held_by_link).
Result<PrunePlan> plan_prune(const std::string& directory, const KeepRule& rule, bool removes_damaged);

/// Removes what the plan says and moves `latest` when its checkpoint goes.
Status prune_checkpoints(const std::string& directory, const PrunePlan& plan);

}  // namespace altiplano
