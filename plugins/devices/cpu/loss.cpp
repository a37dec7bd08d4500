// Family loss: the phases of cross entropy. logits are [.., v] and may be a box of the vocabulary; labels are global
// ids, negative ones are ignored.
#include <cmath>

#include "framework/kernels/pointwise.hpp"
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {
namespace {

Status check_operands(const KernelRequest& request, std::initializer_list<const OperandLayout*> accumulators,
                      const OperandLayout* labels) {
  for (const OperandLayout* operand : accumulators) {
    if (operand->dtype != DType::kF32) return refuse_dtype(request, "f32 and bf16 logits with f32 statistics");
  }
  if (labels != nullptr && labels->dtype != DType::kI32) return refuse_dtype(request, "i32 labels");
  return Status::ok();
}

template <typename T>
ALTIPLANO_CLONES float exp_sum_row(int64_t n, const T* x, float highest) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += exp_at_most_one(to_acc(x[i]) - highest);
  return sum;
}

template <typename T>
ALTIPLANO_CLONES void probability_row(int64_t n, const T* x, float highest, float scale, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = from_acc<T>(exp_at_most_one(to_acc(x[i]) - highest) * scale);
}

}  // namespace

ALTIPLANO_CPU_KERNEL(exp_sum) {
  ALTIPLANO_RETURN_IF_ERROR(check_operands(request, {&request.inputs[1], &request.outputs[0]}, nullptr));
  const Rows rows = rows_of(request.inputs[0].extents);
  return with_compute_type(request, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([rows, threads = context.threads](const KernelCall& call) {
      parallel_ranges(threads, rows.rows, row_grain(16 * rows.width), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          output<float>(call)[r] =
              exp_sum_row(rows.width, input<T>(call, 0) + r * rows.width, input<float>(call, 1)[r]);
        }
      });
    });
  });
}

ALTIPLANO_CPU_KERNEL(pick) {
  ALTIPLANO_RETURN_IF_ERROR(check_operands(request, {&request.outputs[0]}, &request.inputs[1]));
  const OperandLayout& logits = request.inputs[0];
  const Rows rows = rows_of(logits.extents);
  return with_compute_type(request, logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([rows, first = logits.origin.back()](const KernelCall& call) {
      for (int64_t r = 0; r < rows.rows; ++r) {
        const int64_t label = input<int32_t>(call, 1)[r], at = label - first;
        const bool here = label >= 0 && at >= 0 && at < rows.width;
        output<float>(call)[r] = here ? to_acc(input<T>(call, 0)[r * rows.width + at]) : 0.0f;
      }
    });
  });
}

ALTIPLANO_CPU_KERNEL(nll) {
  const auto& in = request.inputs;
  ALTIPLANO_RETURN_IF_ERROR(check_operands(request, {&in[0], &in[1], &in[2], &request.outputs[0]}, &in[3]));
  const int64_t n = num_elements(in[0].extents);
  return kernel_of([n](const KernelCall& call) {
    const float *highest = input<float>(call, 0), *sum = input<float>(call, 1), *picked = input<float>(call, 2);
    for (int64_t i = 0; i < n; ++i) {
      output<float>(call)[i] = input<int32_t>(call, 3)[i] < 0 ? 0.0f : std::log(sum[i]) + highest[i] - picked[i];
    }
  });
}

ALTIPLANO_CPU_KERNEL(count_valid) {
  ALTIPLANO_RETURN_IF_ERROR(check_operands(request, {}, &request.inputs[0]));
  if (request.outputs[0].dtype != DType::kF64) return refuse_dtype(request, "f64 counts");
  const int64_t n = num_elements(request.inputs[0].extents);
  return kernel_of([n](const KernelCall& call) {
    const int32_t* labels = input<int32_t>(call, 0);
    *output<double>(call) =
        static_cast<double>(std::count_if(labels, labels + n, [](int32_t label) { return label >= 0; }));
  });
}

ALTIPLANO_CPU_KERNEL(cross_entropy_grad) {
  const auto& in = request.inputs;
  ALTIPLANO_RETURN_IF_ERROR(check_operands(request, {&in[1], &in[2], &in[4]}, &in[3]));
  if (request.outputs[0].dtype != in[0].dtype)
    return refuse_dtype(request, "f32 and bf16, the gradient like the logits");
  const Rows rows = rows_of(in[0].extents);
  return with_compute_type(request, in[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of([rows, first = in[0].origin.back(), threads = context.threads](const KernelCall& call) {
      parallel_ranges(threads, rows.rows, row_grain(16 * rows.width), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T* x = input<T>(call, 0) + r * rows.width;
          T* y = output<T>(call) + r * rows.width;
          const float highest = input<float>(call, 1)[r], sum = input<float>(call, 2)[r],
                      dloss = input<float>(call, 4)[r];
          const int64_t label = input<int32_t>(call, 3)[r], at = label - first;
          if (label < 0) {
            std::fill(y, y + rows.width, T{});
            continue;
          }
          probability_row(rows.width, x, highest, dloss / sum, y);
          if (at >= 0 && at < rows.width)
            y[at] = from_acc<T>((exp_at_most_one(to_acc(x[at]) - highest) / sum - 1.0f) * dloss);
        }
      });
    });
  });
}

}  // namespace altiplano::cpu
