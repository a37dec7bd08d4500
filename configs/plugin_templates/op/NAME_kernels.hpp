#pragma once
// The arithmetic: softsign, y = x / (1 + |x|), and its gradient. Plain loops that serve every device with host memory.
#include <cmath>
#include <cstdint>

#include "framework/kernels/bfloat16.hpp"

namespace @name@_plugin {

inline double softsign(double x) {
  return x / (1 + std::abs(x));
}
/// d softsign / dx, times the gradient dy that arrives.
inline double softsign_gradient(double dy, double x) {
  return dy / ((1 + std::abs(x)) * (1 + std::abs(x)));
}

/// y[i] = softsign(x[i]); computed in double, rounded once.
template <typename T>
void run_softsign(const T* x, T* y, int64_t n);
/// dx[i] = softsign_gradient(dy[i], x[i]).
template <typename T>
void run_softsign_gradient(const T* dy, const T* x, T* dx, int64_t n);

}  // namespace @name@_plugin
