// Family normalization: layer_norm and its gradients, softmax and its gradient. Statistics are f32.
#include <cmath>

#include "framework/kernels/pointwise.hpp"
#include "plugins/devices/cpu/column_sum.hpp"
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {
namespace {

template <typename T>
ALTIPLANO_CLONES void layer_norm_row(int64_t d, float epsilon, const T* x, const T* w, const T* b, T* y,
                                     float* mean_out, float* rstd_out) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < d; ++i) sum += to_acc(x[i]);
  const float mean = sum / static_cast<float>(d);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < d; ++i) squares += (to_acc(x[i]) - mean) * (to_acc(x[i]) - mean);
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(d) + epsilon);
#pragma omp simd
  for (int64_t i = 0; i < d; ++i) y[i] = from_acc<T>((to_acc(x[i]) - mean) * rstd * to_acc(w[i]) + to_acc(b[i]));
  *mean_out = mean;
  *rstd_out = rstd;
}

template <typename T>
ALTIPLANO_CLONES void layer_norm_grad_row(int64_t d, const T* dy, const T* x, const T* w, float mean, float rstd,
                                          T* dx) {
  float sum = 0, projected = 0;
#pragma omp simd reduction(+ : sum, projected)
  for (int64_t i = 0; i < d; ++i) {
    const float g = to_acc(dy[i]) * to_acc(w[i]);
    sum += g;
    projected += g * ((to_acc(x[i]) - mean) * rstd);
  }
  const float a = sum / static_cast<float>(d), c = projected / static_cast<float>(d);
#pragma omp simd
  for (int64_t i = 0; i < d; ++i) {
    const float normal = (to_acc(x[i]) - mean) * rstd;
    dx[i] = from_acc<T>(rstd * (to_acc(dy[i]) * to_acc(w[i]) - a - normal * c));
  }
}

Status check_statistics(const KernelRequest& request, std::initializer_list<const OperandLayout*> statistics) {
  for (const OperandLayout* operand : statistics) {
    if (operand->dtype != DType::kF32) return refuse_dtype(request, "f32 and bf16 with f32 statistics");
  }
  return Status::ok();
}

/// The operands that hold the tensor itself share its dtype.
Status check_tensors(const KernelRequest& request, std::initializer_list<const OperandLayout*> tensors) {
  for (const OperandLayout* operand : tensors) {
    if (operand->dtype != request.inputs[0].dtype)
      return refuse_dtype(request, "f32 and bf16, the tensors all the same");
  }
  return Status::ok();
}

}  // namespace

ALTIPLANO_CPU_KERNEL(layer_norm) {
  const auto& in = request.inputs;
  const auto& out = request.outputs;
  ALTIPLANO_RETURN_IF_ERROR(check_statistics(request, {&out[1], &out[2]}));
  ALTIPLANO_RETURN_IF_ERROR(check_tensors(request, {&in[1], &in[2], &out[0]}));
  const Rows rows = rows_of(in[0].extents);
  const auto epsilon = static_cast<float>(request.attributes.get_float("epsilon", 1e-5));
  return with_compute_type(request, in[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([rows, epsilon, threads = context.threads](const KernelCall& call) {
      parallel_ranges(threads, rows.rows, row_grain(3 * rows.width), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          layer_norm_row(rows.width, epsilon, input<T>(call, 0) + r * rows.width, input<T>(call, 1), input<T>(call, 2),
                         output<T>(call) + r * rows.width, output<float>(call, 1) + r, output<float>(call, 2) + r);
        }
      });
    });
  });
}

ALTIPLANO_CPU_KERNEL(layer_norm_grad_input) {
  const auto& in = request.inputs;
  ALTIPLANO_RETURN_IF_ERROR(check_statistics(request, {&in[3], &in[4]}));
  ALTIPLANO_RETURN_IF_ERROR(check_tensors(request, {&in[1], &in[2], &request.outputs[0]}));
  const Rows rows = rows_of(in[0].extents);
  return with_compute_type(request, in[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([rows, threads = context.threads](const KernelCall& call) {
      parallel_ranges(threads, rows.rows, row_grain(3 * rows.width), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t at = r * rows.width;
          layer_norm_grad_row(rows.width, input<T>(call, 0) + at, input<T>(call, 1) + at, input<T>(call, 2),
                              input<float>(call, 3)[r], input<float>(call, 4)[r], output<T>(call) + at);
        }
      });
    });
  });
}

ALTIPLANO_CPU_KERNEL(layer_norm_grad_weight) {
  const auto& in = request.inputs;
  ALTIPLANO_RETURN_IF_ERROR(check_statistics(request, {&in[2], &in[3], &request.outputs[0], &request.outputs[1]}));
  ALTIPLANO_RETURN_IF_ERROR(check_tensors(request, {&in[1]}));
  const Rows rows = rows_of(in[0].extents);
  return with_compute_type(request, in[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([rows, threads = context.threads](const KernelCall& call) {
      const T *dy = input<T>(call, 0), *x = input<T>(call, 1);
      const float *mean = input<float>(call, 2), *rstd = input<float>(call, 3);
      struct Terms {
        float first, second;  // of the weight, of the bias
      };
      const auto terms = [=](int64_t r, int64_t c) {
        const int64_t at = r * rows.width + c;
        const float gradient = to_acc(dy[at]);
        return Terms{gradient * ((to_acc(x[at]) - mean[r]) * rstd[r]), gradient};
      };
      column_sum_pairs(threads, rows.rows, rows.width, terms, output<float>(call, 0), output<float>(call, 1));
    });
  });
}

namespace {

template <typename T>
ALTIPLANO_CLONES void softmax_row(int64_t n, const T* x, T* y) {
  float highest = -HUGE_VALF;
#pragma omp simd reduction(max : highest)
  for (int64_t i = 0; i < n; ++i) highest = to_acc(x[i]) > highest ? to_acc(x[i]) : highest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += exp_at_most_one(to_acc(x[i]) - highest);
  const float scale = 1.0f / sum;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = from_acc<T>(exp_at_most_one(to_acc(x[i]) - highest) * scale);
}

template <typename T>
ALTIPLANO_CLONES void softmax_grad_row(int64_t n, const T* y, const T* dy, T* dx) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t i = 0; i < n; ++i) dot += to_acc(y[i]) * to_acc(dy[i]);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = from_acc<T>(to_acc(y[i]) * (to_acc(dy[i]) - dot));
}

}  // namespace

ALTIPLANO_CPU_KERNEL(softmax) {
  ALTIPLANO_RETURN_IF_ERROR(check_tensors(request, {&request.outputs[0]}));
  const Rows rows = rows_of(request.inputs[0].extents);
  return with_compute_type(request, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([rows, threads = context.threads](const KernelCall& call) {
      parallel_ranges(threads, rows.rows, row_grain(16 * rows.width), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          softmax_row(rows.width, input<T>(call, 0) + r * rows.width, output<T>(call) + r * rows.width);
        }
      });
    });
  });
}

ALTIPLANO_CPU_KERNEL(softmax_grad) {
  ALTIPLANO_RETURN_IF_ERROR(check_tensors(request, {&request.inputs[1], &request.outputs[0]}));
  const Rows rows = rows_of(request.inputs[0].extents);
  return with_compute_type(request, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([rows, threads = context.threads](const KernelCall& call) {
      parallel_ranges(threads, rows.rows, row_grain(2 * rows.width), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t at = r * rows.width;
          softmax_grad_row(rows.width, input<T>(call, 0) + at, input<T>(call, 1) + at, output<T>(call) + at);
        }
      });
    });
  });
}

}  // namespace altiplano::cpu
