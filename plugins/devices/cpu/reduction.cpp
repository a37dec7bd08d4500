// Family reduction: reduce_sum, reduce_max, broadcast_to, sum_squares.
#include <cmath>
#include <optional>

#include "plugins/devices/cpu/column_sum.hpp"
#include "plugins/devices/cpu/kernel.hpp"
#include "plugins/devices/cpu/strided.hpp"

namespace altiplano::cpu {
namespace {

/// One run of neighbouring dims that are all kept or all reduced.
struct Group {
  bool reduced;
  int64_t extent;
};

/// The input's dims merged into alternating kept and reduced groups; extent-1 dims vanish.
Result<std::vector<Group>> groups_of(const KernelRequest& request) {
  const Shape& extents = request.inputs[0].extents;
  std::vector<bool> reduced(extents.size(), false);
  for (int64_t dim : request.attributes.get_ints("dims")) {
    if (dim < 0 || dim >= static_cast<int64_t>(extents.size()) || reduced[static_cast<size_t>(dim)]) {
      return invalid_argument("device/cpu: {} over dim {} of {}", request.kind, dim, to_string(extents));
    }
    reduced[static_cast<size_t>(dim)] = true;
  }
  std::vector<Group> groups;
  int64_t kept = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (!reduced[i]) kept *= extents[i];
    if (extents[i] == 1) continue;
    if (!groups.empty() && groups.back().reduced == reduced[i]) {
      groups.back().extent *= extents[i];
    } else {
      groups.push_back({reduced[i], extents[i]});
    }
  }
  if (kept != num_elements(request.outputs[0].extents)) {
    return invalid_argument("device/cpu: {} of {} has {} results, the output {} has {}", request.kind,
                            to_string(extents), kept, to_string(request.outputs[0].extents),
                            num_elements(request.outputs[0].extents));
  }
  return groups;
}

template <typename T>
ALTIPLANO_CLONES double row_sum(int64_t n, const T* x) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(to_acc(x[i]));
  return sum;
}

template <typename T>
ALTIPLANO_CLONES float row_max(int64_t n, const T* x) {
  float highest = -HUGE_VALF;
#pragma omp simd reduction(max : highest)
  for (int64_t i = 0; i < n; ++i) highest = to_acc(x[i]) > highest ? to_acc(x[i]) : highest;
  return highest;
}

/// A reduction seen as [outer kept, reduced, inner kept]; what does not fit this shape goes element by element
/// (WalkReduce).
struct Shape3 {
  int64_t outer = 1, reduced = 1, inner = 1;
};
std::optional<Shape3> shape3_of(const std::vector<Group>& groups) {
  Shape3 out;
  size_t i = 0;
  if (i < groups.size() && !groups[i].reduced) out.outer = groups[i++].extent;
  if (i < groups.size() && groups[i].reduced) out.reduced = groups[i++].extent;
  if (i < groups.size() && !groups[i].reduced) out.inner = groups[i++].extent;
  if (i != groups.size()) return std::nullopt;
  return out;
}

/// Any pattern of groups: visits the inputs of one output in order.
struct WalkReduce {
  std::vector<Group> groups;
  template <typename Visit>
  void inputs_of(int64_t result, Visit visit, size_t end, int64_t stride, int64_t offset) const {
    if (end == 0) return visit(offset);
    const Group& group = groups[end - 1];
    if (!group.reduced) {
      return inputs_of(result / group.extent, visit, end - 1, stride * group.extent,
                       offset + result % group.extent * stride);
    }
    for (int64_t k = 0; k < group.extent; ++k) {
      inputs_of(result, visit, end - 1, stride * group.extent, offset + k * stride);
    }
  }
  template <typename Visit>
  void inputs_of(int64_t result, Visit visit) const {
    inputs_of(result, visit, groups.size(), 1, 0);
  }
};

template <typename T, typename Out>
Result<std::unique_ptr<Kernel>> sum_kernel(const KernelRequest& request, const CpuContext& context,
                                           std::vector<Group> groups) {
  const int64_t results = num_elements(request.outputs[0].extents);
  const auto shape = shape3_of(groups);
  if (!shape) {
    return kernel_of(
        [walk = WalkReduce{std::move(groups)}, results, threads = context.threads](const KernelCall& call) {
          parallel_ranges(threads, results, 64, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              double sum = 0;
              walk.inputs_of(i, [&](int64_t at) { sum += static_cast<double>(to_acc(input<T>(call, 0)[at])); });
              output<Out>(call)[i] = from_acc<Out>(sum);
            }
          });
        });
  }
  if (shape->inner == 1) {
    return kernel_of([s = *shape, threads = context.threads](const KernelCall& call) {
      parallel_ranges(threads, s.outer, row_grain(s.reduced), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          output<Out>(call)[i] = from_acc<Out>(row_sum(s.reduced, input<T>(call, 0) + i * s.reduced));
        }
      });
    });
  }
  return kernel_of([s = *shape, threads = context.threads](const KernelCall& call) {
    for (int64_t o = 0; o < s.outer; ++o) {
      const T* x = input<T>(call, 0) + o * s.reduced * s.inner;
      const auto term = [x, inner = s.inner](int64_t r, int64_t c) {
        return static_cast<Out>(to_acc(x[r * inner + c]));
      };
      column_sums<Out>(threads, s.reduced, s.inner, term, output<Out>(call) + o * s.inner);
    }
  });
}

}  // namespace

ALTIPLANO_CPU_KERNEL(reduce_sum) {
  ALTIPLANO_ASSIGN(std::vector<Group> groups, groups_of(request));
  const DType to = request.outputs[0].dtype;
  return with_floating_type(request, request.inputs[0].dtype, [&](auto tag) -> Result<std::unique_ptr<Kernel>> {
    using T = typename decltype(tag)::type;
    if (to == DType::kF64) return sum_kernel<T, double>(request, context, std::move(groups));
    if (to == DType::kF32) return sum_kernel<T, float>(request, context, std::move(groups));
    return refuse_dtype(request, "f32 and f64 sums");
  });
}

ALTIPLANO_CPU_KERNEL(reduce_max) {
  ALTIPLANO_ASSIGN(std::vector<Group> groups, groups_of(request));
  if (request.outputs[0].dtype != DType::kF32) return refuse_dtype(request, "f32 results of f32 and bf16");
  const int64_t results = num_elements(request.outputs[0].extents);
  return with_compute_type(request, request.inputs[0].dtype, [&](auto tag) -> Result<std::unique_ptr<Kernel>> {
    using T = typename decltype(tag)::type;
    const auto shape = shape3_of(groups);
    if (shape && shape->inner == 1) {
      return kernel_of([s = *shape, threads = context.threads](const KernelCall& call) {
        parallel_ranges(threads, s.outer, row_grain(s.reduced), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            output<float>(call)[i] = row_max(s.reduced, input<T>(call, 0) + i * s.reduced);
          }
        });
      });
    }
    return kernel_of(
        [walk = WalkReduce{std::move(groups)}, results, threads = context.threads](const KernelCall& call) {
          parallel_ranges(threads, results, 64, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              float highest = -HUGE_VALF;
              walk.inputs_of(i, [&](int64_t at) { highest = std::max(highest, to_acc(input<T>(call, 0)[at])); });
              output<float>(call)[i] = highest;
            }
          });
        });
  });
}

ALTIPLANO_CPU_KERNEL(broadcast_to) {
  const OperandLayout &y = request.inputs[0], &x = request.outputs[0];
  if (!is_floating(x.dtype) || !is_floating(y.dtype)) return refuse_dtype(request, "floating dtypes");
  std::vector<bool> inserted(x.extents.size(), false);
  for (int64_t dim : request.attributes.get_ints("dims")) {
    if (dim >= 0 && dim < static_cast<int64_t>(inserted.size())) inserted[static_cast<size_t>(dim)] = true;
  }
  const Shape from = strides_of(y.extents), to = strides_of(x.extents);
  StridedCopy copy;
  size_t source = 0;
  for (size_t i = 0; i < x.extents.size(); ++i) {
    const bool fits = inserted[i] || (source < y.extents.size() && y.extents[source] == x.extents[i]);
    if (!fits || !copy.add_dim(x.extents[i], inserted[i] ? 0 : from[source], to[i])) {
      return invalid_argument("device/cpu: broadcast_to of {} to {} with the inserted dims {}", to_string(y.extents),
                              to_string(x.extents), to_string(request.attributes.get_ints("dims")));
    }
    if (!inserted[i]) ++source;
  }
  return kernel_of([copy, from_dtype = y.dtype, to_dtype = x.dtype, threads = context.threads](const KernelCall& call) {
    const Status status =
        run_strided_copy(copy, StridedMode::kWrite, from_dtype, call.inputs[0], to_dtype, call.outputs[0], threads);
    ALTIPLANO_ASSERT(status.is_ok(), "{}", status.to_string());
  });
}

namespace {

constexpr int64_t kBlock = 8192;  ///< partial sums per block, added in order: independent of the thread count

template <typename T>
ALTIPLANO_CLONES double block_sum_squares(int64_t n, const T* x) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<double>(to_acc(x[i]));
    sum += value * value;
  }
  return sum;
}

}  // namespace

ALTIPLANO_CPU_KERNEL(sum_squares) {
  const int64_t n = num_elements(request.inputs[0].extents), blocks = (n + kBlock - 1) / kBlock;
  if (request.outputs[0].dtype != DType::kF64) return refuse_dtype(request, "f64 results");
  return with_floating_type(request, request.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of(
        [n, blocks, threads = context.threads](const KernelCall& call) {
          double* partial = static_cast<double*>(call.workspace);
          parallel_ranges(threads, blocks, 4, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              partial[i] = block_sum_squares(std::min(kBlock, n - i * kBlock), input<T>(call, 0) + i * kBlock);
            }
          });
          double sum = 0;
          for (int64_t i = 0; i < blocks; ++i) sum += partial[i];
          *output<double>(call) = sum;
        },
        blocks * static_cast<int64_t>(sizeof(double)));
  });
}

}  // namespace altiplano::cpu
