#pragma once
// Sampling from a model: choice of the next token, pure and seeded.
#include <cstdint>
#include <span>

namespace altiplano {

struct SamplingOptions {
  double temperature = 0;  ///< 0: the most likely token (ties: the smallest id)
  int64_t top_k = 0;       ///< 0: all
  uint64_t seed = 1;
};

/// Next token from one position's logits; `index` numbers the draws.
int32_t choose_token(std::span<const float> logits, const SamplingOptions& options, uint64_t index);

}  // namespace altiplano
