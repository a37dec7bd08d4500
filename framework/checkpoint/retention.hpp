#pragma once
// Which checkpoints of a run stay. Pure functions over (attempt, step): a run that was resumed from an earlier step has
// left later ones behind; what its last start wrote is newer than those, whatever the numbers of their steps.
#include <compare>
#include <cstdint>
#include <vector>

namespace altiplano {

struct KeepRule {
  int64_t last = 0;   ///< newest ones that stay; 0: all
  int64_t every = 0;  ///< steps that are multiples of this stay for good; 0: none
};

/// Age of a checkpoint within its run: larger is newer.
struct CheckpointAge {
  int64_t attempt = 1, step = 0;
  auto operator<=>(const CheckpointAge&) const = default;
};

/// Those that go, oldest first. The newest one never goes.
std::vector<CheckpointAge> ages_to_remove(std::vector<CheckpointAge> ages, const KeepRule& rule);

/// Most checkpoints that lie there at one time while a run of `max_steps` saves every `save_every` steps (0: only at
/// the end), the one being written included.
int64_t most_checkpoints(const KeepRule& rule, int64_t save_every, int64_t max_steps);

}  // namespace altiplano
