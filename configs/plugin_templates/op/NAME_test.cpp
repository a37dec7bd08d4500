// A test of the arithmetic alone, where the conformance suite does not look: negative numbers and zero.
#include <cstdio>

#include "@name@_kernels.hpp"

int main() {
  const double x[] = {-3, -0.5, 0, 1};
  double y[4];
  @name@_plugin::run_softsign(x, y, 4);
  for (int i = 0; i < 4; ++i) {
    const double delta = 1e-6;
    const double above = @name@_plugin::softsign(x[i] + delta), below = @name@_plugin::softsign(x[i] - delta);
    const double difference = (above - below) / (2 * delta);
    if (std::abs(y[i]) >= 1 || std::abs(@name@_plugin::softsign_gradient(1, x[i]) - difference) > 1e-5)
      return std::printf("wrong at %g\n", x[i]), 1;
  }
  return y[0] == -0.75 && y[3] == 0.5 ? 0 : 1;
}
