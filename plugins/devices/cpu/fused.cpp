// Family fused: bias_gelu, bias_gelu_grad, residual_add: a bias and what comes after it in one pass over memory.
#include "framework/kernels/pointwise.hpp"
#include "plugins/devices/cpu/dropout_mask.hpp"
#include "plugins/devices/cpu/gelu_form.hpp"
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {
namespace {

template <typename T, typename Form>
ALTIPLANO_CLONES void gelu_row(int64_t n, const T* x, const T* bias, T* y, Form) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = from_acc<T>(Form::value(to_acc(x[i]) + to_acc(bias[i])));
}

template <typename T, typename Form>
ALTIPLANO_CLONES void gelu_grad_row(int64_t n, const T* x, const T* bias, const T* dy, T* dx, Form) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = from_acc<T>(Form::derivative(to_acc(x[i]) + to_acc(bias[i])) * to_acc(dy[i]));
}

template <typename T>
ALTIPLANO_CLONES void add_row(int64_t n, const T* x, const T* residual, const T* bias, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = from_acc<T>(to_acc(residual[i]) + (to_acc(x[i]) + to_acc(bias[i])));
}

/// The same with what dropout leaves of x + bias.
template <typename T>
ALTIPLANO_CLONES void add_kept(int64_t n, const T* x, const T* residual, const T* bias, const float* factors, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    y[i] = from_acc<T>(to_acc(residual[i]) + kept(to_acc(x[i]) + to_acc(bias[i]), factors[i]));
}

/// Tensors seen as rows as long as the bias; refuses operands that do not fit each other.
Result<Rows> rows_along(const KernelRequest& request, size_t bias_input) {
  const OperandLayout &y = request.outputs[0], &bias = request.inputs[bias_input];
  if (!same_dtypes(request.inputs, y.dtype)) return refuse_dtype(request, "one floating dtype");
  const Rows rows = rows_of(y.extents, bias.extents.size());
  if (rows.width == 0) return Rows{0, 0};  // no element at all
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Shape& extents = request.inputs[i].extents;
    if (i == bias_input ? num_elements(extents) == rows.width : extents == y.extents) continue;
    return invalid_argument("device/cpu: {} with input {} {} and output {}", request.kind, i, to_string(extents),
                            to_string(y.extents));
  }
  return rows;
}

/// Runs body(row) on all rows in parallel ranges.
template <typename Body>
void for_each_row(int threads, const Rows& rows, int64_t cost, Body&& body) {
  parallel_ranges(threads, rows.rows, row_grain(cost * rows.width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r);
  });
}

}  // namespace

ALTIPLANO_CPU_KERNEL(bias_gelu) {
  ALTIPLANO_ASSIGN(const Rows rows, rows_along(request, 1));
  return with_gelu(request, [&](auto form) {
    return with_compute_type(request, request.outputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return kernel_of([rows, form, threads = context.threads](const KernelCall& call) {
        for_each_row(threads, rows, 10, [&](int64_t r) {
          gelu_row(rows.width, input<T>(call, 0) + r * rows.width, input<T>(call, 1), output<T>(call) + r * rows.width,
                   form);
        });
      });
    });
  });
}

ALTIPLANO_CPU_KERNEL(bias_gelu_grad) {
  ALTIPLANO_ASSIGN(const Rows rows, rows_along(request, 1));
  return with_gelu(request, [&](auto form) {
    return with_compute_type(request, request.outputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return kernel_of([rows, form, threads = context.threads](const KernelCall& call) {
        for_each_row(threads, rows, 20, [&](int64_t r) {
          const int64_t at = r * rows.width;
          gelu_grad_row(rows.width, input<T>(call, 0) + at, input<T>(call, 1), input<T>(call, 2) + at,
                        output<T>(call) + at, form);
        });
      });
    });
  });
}

ALTIPLANO_CPU_KERNEL(residual_add) {
  ALTIPLANO_ASSIGN(const Rows rows, rows_along(request, 2));
  const double p = request.attributes.get_float("p");
  if (!(p >= 0 && p < 1)) return invalid_argument("device/cpu: residual_add with p = {}; needs 0 <= p < 1", p);
  // Positions are those of rows along the last dim; the bias may be longer.
  const Rows drops = rows.rows > 0 ? rows_of(request.outputs[0].extents) : rows;
  return with_compute_type(request, request.outputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([rows, drops, p, mask = DropoutMask(request, p), positions = RowPositions(request.outputs[0]),
                      threads = context.threads](const KernelCall& call) {
      const T *x = input<T>(call, 0), *residual = input<T>(call, 1), *bias = input<T>(call, 2);
      T* y = output<T>(call);
      if (p == 0 || !call.step->training) {
        return for_each_row(threads, rows, 2, [&](int64_t r) {
          const int64_t at = r * rows.width;
          add_row(rows.width, x + at, residual + at, bias, y + at);
        });
      }
      for_each_row(threads, drops, 16, [&](int64_t r) {
        const int64_t at = r * drops.width;
        const T* row_bias = bias + at % rows.width;
        mask.in_pieces(static_cast<uint64_t>(call.step->step), positions.of(r, call.batch_offset), drops.width,
                       [&](int64_t c, int64_t count, const float* factors) {
                         add_kept(count, x + at + c, residual + at + c, row_bias + c, factors, y + at + c);
                       });
      });
    });
  });
}

}  // namespace altiplano::cpu
