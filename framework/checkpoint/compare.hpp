#pragma once
// Two checkpoints side by side: what their manifests say, and every tensor by its values, whatever plans wrote them.
#include <string>
#include <vector>

#include "framework/checkpoint/restore.hpp"

namespace altiplano {

struct TensorDifference {
  std::string name;
  std::string what;           ///< "only in the first", "f32 [4] against f64 [4]"; empty: the values differ
  int64_t num_differing = 0;  ///< elements whose bits differ
  double largest = 0;         ///< |a - b| over them; infinite where one is not finite
};

struct CheckpointDifference {
  std::vector<std::string> facts;         ///< "step: 400 against 450", also settings
  std::vector<TensorDifference> tensors;  ///< those that differ, by name
  size_t num_tensors = 0;                 ///< of both together
};

/// Reads tensor by tensor: memory for the largest one, twice.
Result<CheckpointDifference> compare_checkpoints(const Checkpoint& a, const Checkpoint& b);

}  // namespace altiplano
