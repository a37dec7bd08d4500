#include "framework/runtime/data/sample_order.hpp"

#include <algorithm>
#include <bit>

#include "framework/base/random.hpp"
#include "framework/base/status.hpp"

namespace altiplano {
namespace {

constexpr uint64_t kRounds = 8;

/// One pass through the network: a bijection on [0, 2^(2 half_bits)).
uint64_t permute(uint64_t stream, uint64_t epoch, uint64_t value, int half_bits) {
  uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = value >> half_bits, right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    uint64_t mixed = random_quad(stream, epoch, (round << 32) | right)[0];
    left ^= mixed & mask;
    std::swap(left, right);
  }
  return (left << half_bits) | right;
}

}  // namespace

int64_t sample_at(uint64_t seed, int64_t epoch, int64_t index, int64_t num_samples) {
  ALTIPLANO_ASSERT(index >= 0 && index < num_samples && epoch >= 0, "sample {} of {} in epoch {}", index, num_samples,
                   epoch);
  auto n = static_cast<uint64_t>(num_samples), value = static_cast<uint64_t>(index);
  int half_bits = std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2);
  uint64_t stream = random_stream(seed, "data.order");
  do {
    value = permute(stream, static_cast<uint64_t>(epoch), value, half_bits);
  } while (value >= n);
  return static_cast<int64_t>(value);
}

}  // namespace altiplano
