#pragma once
// What measurements share: a clock and order statistics.
#include <algorithm>
#include <chrono>
#include <vector>

namespace altiplano {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The value below which `part` of them lie; of at least one.
inline double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace altiplano
