#include "plugins/devices/cpu/dropout_mask.hpp"

#include <cmath>

#include "plugins/devices/cpu/random_words.hpp"

namespace altiplano::cpu {
namespace {

ALTIPLANO_CLONES void factors_of_words(int64_t n, const uint32_t* words, uint32_t smallest_kept, float scale,
                                       float* factors) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) factors[i] = words[i] >= smallest_kept ? scale : 0.0f;
}

}  // namespace

DropoutMask::DropoutMask(const KernelRequest& request, double p)
    : stream_(random_stream(request.seed, request.attributes.get_string("stream"))),
      scale_(static_cast<float>(1.0 / (1.0 - p))) {
  // random_uniform() is (word + 0.5) / 2^32, which is at least p from this word on.
  constexpr double kWords = 4294967296.0;
  const double smallest = std::max(0.0, std::ceil(p * kWords - 0.5));
  keeps_any_ = smallest < kWords;
  smallest_kept_ = keeps_any_ ? static_cast<uint32_t>(smallest) : 0;
}

void DropoutMask::factors(uint64_t step, uint64_t index, int64_t n, float* factors) const {
  if (!keeps_any_) {
    std::fill_n(factors, n, 0.0f);
    return;
  }
  uint32_t words[kPiece + 8];  // positions may start and end within a quad
  const uint64_t first = index / 4, last = (index + static_cast<uint64_t>(n) + 3) / 4;
  random_words(stream_, step, first, static_cast<int64_t>(last - first), words);
  factors_of_words(n, words + index % 4, smallest_kept_, scale_, factors);
}

}  // namespace altiplano::cpu
