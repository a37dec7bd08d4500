// A test of one kernel alone: no plugin is loaded.
#include <cstdio>

#include "@name@_kernels.hpp"

int main() {
  const altiplano::OperandLayout four{altiplano::DType::kF32, {4}, {0}, {4}, -1};
  auto kernel = @name@_plugin::make_kernel({"add", {}, {four, four}, {four}, 0});
  if (!kernel.is_ok()) return std::printf("%s\n", kernel.status().to_string().c_str()), 1;
  const float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40};
  float sum[4] = {};
  const void* inputs[] = {a, b};
  void* outputs[] = {sum};
  if (!(*kernel)->run({inputs, outputs}).is_ok() || sum[3] != 44) return std::puts("4 + 40 is not 44"), 1;
  return @name@_plugin::make_kernel({"fold_paper", {}, {}, {}, 0}).is_ok() ? 1 : 0;
}
