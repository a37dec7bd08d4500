#pragma once
// What one rank of train() brings back, and how the results of all ranks become one. Ranks that are processes hand it
// over in a file.
#include <string>

#include "tests/support/train.hpp"

namespace altiplano::test {

/// One box of a persistent tensor, as doubles.
struct TensorPiece {
  std::string name;
  Shape global;
  Box box;
  std::vector<double> values;
};

struct RankResult {
  std::vector<double> losses, norms, validation;
  std::vector<float> logits;     ///< where the plan has them on the host
  std::vector<int64_t> applied;  ///< 1 per step whose update ran
  std::vector<TensorPiece> initial, final;
  int64_t predicted_bytes = 0, peak_bytes = 0;
};

/// Parameters, copies, masters and optimizer states of a rank as they are now.
std::vector<TensorPiece> take_state(Executor& executor);
/// The inverse: `start` holds whole tensors.
void restore_state(Executor& executor, const std::map<std::string, std::vector<double>>& start);

std::string serialize(const RankResult& result);
/// Throws nlohmann's exceptions on damaged bytes.
RankResult deserialize(const std::string& bytes);

/// Whole tensors from all ranks' pieces; notes ranks that do not agree bit by bit on what they share.
TrainResult merge(const std::vector<RankResult>& ranks);

}  // namespace altiplano::test
