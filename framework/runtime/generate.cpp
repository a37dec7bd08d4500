#include "framework/runtime/generate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "framework/base/random.hpp"

namespace altiplano {

int32_t choose_token(std::span<const float> logits, const SamplingOptions& options, uint64_t index) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (options.temperature <= 0) return ids[0];
  size_t count = options.top_k > 0 ? std::min(static_cast<size_t>(options.top_k), ids.size()) : ids.size();
  std::vector<double> weights(count);
  double top = logits[static_cast<size_t>(ids[0])], sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += weights[i] = std::exp((logits[static_cast<size_t>(ids[i])] - top) / options.temperature);
  double at = random_uniform(random_stream(options.seed, "generate"), 0, index) * sum;
  for (size_t i = 0; i < count; ++i)
    if ((at -= weights[i]) < 0) return ids[i];
  return ids[count - 1];
}

}  // namespace altiplano
