#pragma once
// Between a rank's memory and checkpoints: which boxes it saves, which it wants.
#include <vector>

#include "framework/checkpoint/restore.hpp"
#include "framework/checkpoint/save.hpp"
#include "framework/runtime/executor.hpp"

namespace altiplano {

/// What this rank owns (each element of the model is owned by one rank), in host memory: the device's own memory where
/// the host can read it, so that a save takes no second copy, else a copy. Holds until the next step.
class SavedState {
 public:
  static Result<SavedState> take(Executor& executor);
  const std::vector<TensorPart>& parts() const { return parts_; }

 private:
  std::vector<std::vector<char>> memory_;
  std::vector<TensorPart> parts_;
};

/// Reads everything the rank holds but gradients and totals, replicas and tied copies included.
Status restore_state(Executor& executor, const Checkpoint& checkpoint);

/// Only the parameters (generation).
Status restore_parameters(Executor& executor, const Checkpoint& checkpoint);

}  // namespace altiplano
