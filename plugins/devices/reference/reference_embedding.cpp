#include <algorithm>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

template <typename T>
Form embedding(const KernelRequest& request) {
  const OperandLayout table = request.inputs[0];
  return {[table, n = num_elements(request.inputs[1].extents), d = table.extents[1]](const KernelCall& call) {
    for (int64_t i = 0; i < n; ++i) {
      int64_t row = input<int32_t>(call, 1)[i] - origin_of(table, 0, call);
      bool here = row >= 0 && row < table.extents[0];
      T* y = output<T>(call, 0) + i * d;
      for (int64_t j = 0; j < d; ++j) y[j] = here ? input<T>(call, 0)[row * d + j] : T(0);
    }
  }};
}

template <typename T>
Form embedding_grad(const KernelRequest& request) {
  const OperandLayout table = request.outputs[0];
  int64_t d = table.extents[1], size = num_elements(table.extents);
  auto run = [table, d, size, n = num_elements(request.inputs[1].extents)](const KernelCall& call) {
    auto* sums = static_cast<double*>(call.workspace);
    std::fill(sums, sums + size, 0.0);
    for (int64_t i = 0; i < n; ++i) {
      int64_t row = input<int32_t>(call, 1)[i] - origin_of(table, 0, call);
      if (row < 0 || row >= table.extents[0]) continue;
      for (int64_t j = 0; j < d; ++j) sums[row * d + j] += static_cast<double>(input<T>(call, 0)[i * d + j]);
    }
    for (int64_t i = 0; i < size; ++i) output<T>(call, 0)[i] = static_cast<T>(sums[i]);
  };
  return {run, size * static_cast<int64_t>(sizeof(double))};
}

}  // namespace

void add_embedding_kernels(Table& table) {
  table["embedding"] = {embedding<float>, embedding<double>};
  table["embedding_grad"] = {embedding_grad<float>, embedding_grad<double>};
}

}  // namespace altiplano::reference
