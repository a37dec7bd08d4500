#pragma once
// Sizes and numbers of calls that bench_collectives and its Open MPI counterpart share.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace altiplano::bench {

/// 32 B (a step's totals), then powers of four from 1 KiB.
inline std::vector<int64_t> sizes_up_to(int64_t largest) {
  std::vector<int64_t> sizes = {32};
  for (int64_t bytes = 1024; bytes <= largest; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

inline int calls_of(int64_t bytes) {
  return static_cast<int>(std::clamp<int64_t>((int64_t{16} << 20) / bytes, 2, 500));
}

}  // namespace altiplano::bench
