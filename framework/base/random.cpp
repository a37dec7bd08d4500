#include "framework/base/random.hpp"

#include <cmath>
#include <numbers>

namespace altiplano {

double random_normal(uint64_t stream, uint64_t step, uint64_t index) {
  // Each element takes its own quad (index, not index/4): two words are used.
  auto words = random_quad(stream, step, index);
  double u = (static_cast<double>(words[0]) + 0.5) * (1.0 / 4294967296.0);
  double v = (static_cast<double>(words[1]) + 0.5) * (1.0 / 4294967296.0);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace altiplano
