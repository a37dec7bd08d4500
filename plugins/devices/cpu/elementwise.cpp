// Family elementwise: add, multiply, add_bias, scale, cast, gelu, gelu_grad, dropout, fill.
#include "framework/kernels/pointwise.hpp"
#include "plugins/devices/cpu/dropout_mask.hpp"
#include "plugins/devices/cpu/gelu_form.hpp"
#include "plugins/devices/cpu/kernel.hpp"
#include "plugins/devices/cpu/strided.hpp"

namespace altiplano::cpu {
namespace {

constexpr int64_t kGrain = 16384;  ///< elements below which a second thread costs more than it brings

template <typename T, typename F>
ALTIPLANO_CLONES void map_range(int64_t begin, int64_t end, const T* x, T* y, F f) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) y[i] = from_acc<T>(f(to_acc(x[i])));
}

template <typename T, typename F>
ALTIPLANO_CLONES void zip_range(int64_t begin, int64_t end, const T* a, const T* b, T* y, F f) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) y[i] = from_acc<T>(f(to_acc(a[i]), to_acc(b[i])));
}

template <typename T, typename F>
Result<std::unique_ptr<Kernel>> map_kernel(const KernelRequest& request, const CpuContext& context, F f) {
  const int64_t n = num_elements(request.outputs[0].extents);
  if (!same_dtypes(request.outputs, request.inputs[0].dtype)) return refuse_dtype(request, "one floating dtype");
  return kernel_of([n, f, threads = context.threads](const KernelCall& call) {
    parallel_ranges(threads, n, kGrain,
                    [&](int64_t begin, int64_t end) { map_range(begin, end, input<T>(call, 0), output<T>(call), f); });
  });
}

template <typename T, typename F>
Result<std::unique_ptr<Kernel>> zip_kernel(const KernelRequest& request, const CpuContext& context, F f) {
  const int64_t n = num_elements(request.outputs[0].extents);
  const DType dtype = request.outputs[0].dtype;
  if (!same_dtypes(request.inputs, dtype)) return refuse_dtype(request, "one floating dtype");
  for (const OperandLayout& operand : request.inputs) {
    if (operand.extents != request.outputs[0].extents) {
      return invalid_argument("device/cpu: {} of {} and {}: extents must be equal", request.kind,
                              to_string(operand.extents), to_string(request.outputs[0].extents));
    }
  }
  return kernel_of([n, f, threads = context.threads](const KernelCall& call) {
    parallel_ranges(threads, n, kGrain, [&](int64_t begin, int64_t end) {
      zip_range(begin, end, input<T>(call, 0), input<T>(call, 1), output<T>(call), f);
    });
  });
}

}  // namespace

ALTIPLANO_CPU_KERNEL(add) {
  return with_floating_type(request, request.outputs[0].dtype, [&](auto tag) {
    return zip_kernel<typename decltype(tag)::type>(request, context, [](auto a, auto b) { return a + b; });
  });
}

ALTIPLANO_CPU_KERNEL(multiply) {
  return with_floating_type(request, request.outputs[0].dtype, [&](auto tag) {
    return zip_kernel<typename decltype(tag)::type>(request, context, [](auto a, auto b) { return a * b; });
  });
}

ALTIPLANO_CPU_KERNEL(scale) {
  const double factor = request.attributes.get_float("factor", 1.0);
  return with_floating_type(request, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = decltype(to_acc(T{}));
    return map_kernel<T>(request, context, [factor = static_cast<Acc>(factor)](Acc x) { return x * factor; });
  });
}

ALTIPLANO_CPU_KERNEL(add_bias) {
  const Rows rows = rows_of(request.inputs[0].extents, request.inputs[1].extents.size());
  const DType dtype = request.outputs[0].dtype;
  if (!same_dtypes(request.inputs, dtype)) return refuse_dtype(request, "one floating dtype");
  if (rows.width != num_elements(request.inputs[1].extents)) {
    return invalid_argument("device/cpu: add_bias of {} to {}: the bias must match the last dims",
                            to_string(request.inputs[1].extents), to_string(request.inputs[0].extents));
  }
  return with_compute_type(request, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([rows, threads = context.threads](const KernelCall& call) {
      parallel_ranges(threads, rows.rows, row_grain(rows.width), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t at = r * rows.width;
          zip_range(0, rows.width, input<T>(call, 0) + at, input<T>(call, 1), output<T>(call) + at,
                    [](float x, float bias) { return x + bias; });
        }
      });
    });
  });
}

ALTIPLANO_CPU_KERNEL(cast) {
  const DType from = request.inputs[0].dtype, to = request.outputs[0].dtype;
  if (!can_copy(from, to)) return refuse_dtype(request, "floating dtypes");
  StridedCopy copy;
  if (!copy.add_dim(num_elements(request.inputs[0].extents), 1, 1)) return refuse_dtype(request, "one dim");
  return kernel_of([copy, from, to, threads = context.threads](const KernelCall& call) {
    const Status status =
        run_strided_copy(copy, StridedMode::kWrite, from, call.inputs[0], to, call.outputs[0], threads);
    ALTIPLANO_ASSERT(status.is_ok(), "{}", status.to_string());
  });
}

ALTIPLANO_CPU_KERNEL(gelu) {
  return with_gelu(request, [&](auto form) {
    using Form = decltype(form);
    return with_compute_type(request, request.inputs[0].dtype, [&](auto tag) {
      return map_kernel<typename decltype(tag)::type>(request, context, [](float x) { return Form::value(x); });
    });
  });
}

ALTIPLANO_CPU_KERNEL(gelu_grad) {
  return with_gelu(request, [&](auto form) {
    using Form = decltype(form);
    return with_compute_type(request, request.outputs[0].dtype, [&](auto tag) {
      return zip_kernel<typename decltype(tag)::type>(request, context,
                                                      [](float x, float dy) { return Form::derivative(x) * dy; });
    });
  });
}

ALTIPLANO_CPU_KERNEL(dropout) {
  const OperandLayout& x = request.inputs[0];
  const double p = request.attributes.get_float("p");
  if (!(p >= 0 && p < 1)) return invalid_argument("device/cpu: dropout with p = {}; needs 0 <= p < 1", p);
  if (!same_dtypes(request.outputs, x.dtype)) return refuse_dtype(request, "one floating dtype");
  const Rows rows = rows_of(x.extents);
  return with_compute_type(request, x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([mask = DropoutMask(request, p), rows, positions = RowPositions(x),
                      threads = context.threads](const KernelCall& call) {
      const T* from = input<T>(call, 0);
      T* to = output<T>(call);
      if (!call.step->training) {
        std::copy(from, from + rows.rows * rows.width, to);
        return;
      }
      parallel_ranges(threads, rows.rows, row_grain(16 * rows.width), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          mask.apply(static_cast<uint64_t>(call.step->step), positions.of(r, call.batch_offset), rows.width,
                     from + r * rows.width, to + r * rows.width);
      });
    });
  });
}

ALTIPLANO_CPU_KERNEL(fill) {
  const double value = request.attributes.get_float("value");
  const int64_t n = num_elements(request.outputs[0].extents);
  return with_floating_type(request, request.outputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([n, element = from_acc<T>(value), threads = context.threads](const KernelCall& call) {
      parallel_ranges(threads, n, kGrain, [&](int64_t begin, int64_t end) {
        std::fill(output<T>(call) + begin, output<T>(call) + end, element);
      });
    });
  });
}

}  // namespace altiplano::cpu
