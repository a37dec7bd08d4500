#pragma once
// Offsets of buffers that live for a while: a pure function from (bytes, lifetime) to offsets.
#include <cstdint>
#include <vector>

namespace altiplano {

inline constexpr int64_t kBufferAlignment = 64;  ///< one cache line
inline int64_t align_up(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

struct LiveRange {
  int64_t bytes = 0;
  int first = 0, last = 0;  ///< inclusive instruction indices
  int64_t offset = 0;       ///< result
};

/// Largest first, each at the lowest offset where no range alive at the same time lies ("greedy by size", Pisarchyk and
/// Lee 2020, "Efficient memory management for deep neural net inference", section 5). Returns the bytes needed.
int64_t assign_offsets(std::vector<LiveRange>& ranges);

}  // namespace altiplano
