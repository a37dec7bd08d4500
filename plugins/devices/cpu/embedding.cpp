// Family embedding. The table may be a box of the rows: ids index the global table, rows held elsewhere give 0 and take
// nothing.
#include <cstring>

#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

ALTIPLANO_CPU_KERNEL(embedding) {
  const OperandLayout &table = request.inputs[0], &ids = request.inputs[1];
  if (ids.dtype != DType::kI32 || request.outputs[0].dtype != table.dtype)
    return refuse_dtype(request, "f32 and bf16, ids i32");
  const int64_t n = num_elements(ids.extents);
  const Rows rows = rows_of(table.extents);
  return with_compute_type(request, table.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([n, rows, first = table.origin[0], threads = context.threads](const KernelCall& call) {
      parallel_ranges(threads, n, row_grain(rows.width), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = input<int32_t>(call, 1)[i] - first;
          T* to = output<T>(call) + i * rows.width;
          if (row >= 0 && row < rows.rows) {
            std::memcpy(to, input<T>(call, 0) + row * rows.width, static_cast<size_t>(rows.width) * sizeof(T));
          } else {
            std::memset(to, 0, static_cast<size_t>(rows.width) * sizeof(T));
          }
        }
      });
    });
  });
}

namespace {

template <typename T>
ALTIPLANO_CLONES void add_row(int64_t n, const T* x, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += to_acc(x[i]);
}

}  // namespace

ALTIPLANO_CPU_KERNEL(embedding_grad) {
  const OperandLayout &dy = request.inputs[0], &ids = request.inputs[1], &dtable = request.outputs[0];
  if (ids.dtype != DType::kI32 || dtable.dtype != DType::kF32)
    return refuse_dtype(request, "f32 and bf16 into f32, ids i32");
  const int64_t n = num_elements(ids.extents);
  const Rows rows = rows_of(dtable.extents);
  return with_compute_type(request, dy.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([n, rows, first = dtable.origin[0], threads = context.threads](const KernelCall& call) {
      float* to = output<float>(call);
      parallel_ranges(threads, rows.rows * rows.width, 1 << 16, [&](int64_t begin, int64_t end) {
        std::memset(to + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
      });
      // Threads share out the columns: each adds the tokens in their order, and no two touch one element.
      parallel_ranges(threads, (rows.width + 15) / 16, row_grain(16 * n), [&](int64_t begin, int64_t end) {
        const int64_t from = begin * 16, width = std::min(rows.width, end * 16) - from;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t row = input<int32_t>(call, 1)[i] - first;
          if (row < 0 || row >= rows.rows) continue;
          add_row(width, input<T>(call, 0) + i * rows.width + from, to + row * rows.width + from);
        }
      });
    });
  });
}

}  // namespace altiplano::cpu
