#pragma once
// What the kernel families share: the context a kernel is made in, kernels from a callable, dispatch by dtype, parallel
// ranges.
//
// Rules of every kernel here: nothing is allocated while running (scratch is workspace_bytes); work is divided into
// ranges fixed by sizes and thread count, never by timing, and sums are combined in a fixed order, so equal thread
// counts give equal bits; storage may be bf16, arithmetic is f32 (f64 where the tensor is f64).
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <dnnl.hpp>
#include <exception>
#include <memory>
#include <string>

#include "framework/api/device.hpp"
#include "framework/base/clones.hpp"
#include "framework/kernels/bfloat16.hpp"

namespace altiplano::cpu {

struct CpuContext {
  int threads = 1;
  dnnl::engine engine;
  dnnl::stream stream;
};

using MakeKernel = Result<std::unique_ptr<Kernel>> (*)(const KernelRequest&, const CpuContext&);

struct KernelEntry {
  const char* kind;
  int num_inputs;  ///< -1: at least one
  int num_outputs;
  MakeKernel make;
};
/// Nothing of that kind: nullptr.
const KernelEntry* find_kernel_entry(const std::string& kind);

/// A kernel whose work is one callable void(const KernelCall&).
template <typename Run>
class RunKernel final : public Kernel {
 public:
  RunKernel(Run run, int64_t workspace, std::string description)
      : run_(std::move(run)), workspace_(workspace), description_(std::move(description)) {}
  int64_t workspace_bytes() const noexcept override { return workspace_; }
  std::string describe() const override { return description_; }
  Status run(const KernelCall& call) noexcept override {
    try {
      run_(call);
      return Status::ok();
    } catch (const std::exception& error) {
      return runtime_failure("device/cpu: {}", error.what());
    }
  }

 private:
  Run run_;
  int64_t workspace_;
  std::string description_;
};

template <typename Run>
Result<std::unique_ptr<Kernel>> kernel_of(Run run, int64_t workspace = 0, std::string description = "loops") {
  return std::unique_ptr<Kernel>(std::make_unique<RunKernel<Run>>(std::move(run), workspace, std::move(description)));
}

template <typename T>
const T* input(const KernelCall& call, size_t i) {
  return static_cast<const T*>(call.inputs[i]);
}
template <typename T>
T* output(const KernelCall& call, size_t i = 0) {
  return static_cast<T*>(call.outputs[i]);
}

/// A refusal that names kind, dtypes and what there is.
Status refuse_dtype(const KernelRequest& request, const char* supported);
/// Whether every operand has it.
bool same_dtypes(const std::vector<OperandLayout>& operands, DType dtype);

template <typename T>
struct TypeTag {
  using type = T;
};
/// Calls f(TypeTag<T>) for f32 and bf16; refuses others.
template <typename F>
Result<std::unique_ptr<Kernel>> with_compute_type(const KernelRequest& request, DType dtype, F&& f) {
  if (dtype == DType::kF32) return f(TypeTag<float>{});
  if (dtype == DType::kBF16) return f(TypeTag<BFloat16>{});
  return refuse_dtype(request, "f32 and bf16");
}
/// f64 too: scalars of the loss and its seed are f64 in every precision.
template <typename F>
Result<std::unique_ptr<Kernel>> with_floating_type(const KernelRequest& request, DType dtype, F&& f) {
  if (dtype == DType::kF64) return f(TypeTag<double>{});
  return with_compute_type(request, dtype, std::forward<F>(f));
}

/// Calls body(begin, end) on `threads` equal ranges of 0..n; serial when the whole is less than `grain` items.
template <typename Body>
void parallel_ranges(int threads, int64_t n, int64_t grain, Body&& body) {
  if (n <= 0) return;
  if (threads <= 1 || n < grain || n == 1) return body(int64_t{0}, n);
#pragma omp parallel num_threads(threads)
  {
    // omp may give fewer threads than asked; the ranges stay those of `threads`.
    for (int part = omp_get_thread_num(); part < threads; part += omp_get_num_threads()) {
      const int64_t begin = n * part / threads, end = n * (part + 1) / threads;
      if (begin < end) body(begin, end);
    }
  }
}

/// The same with the range's number (0 .. threads-1), for scratch per range.
template <typename Body>
void parallel_parts(int threads, int64_t n, Body&& body) {
  if (n <= 0) return;
  const int parts = static_cast<int>(std::min<int64_t>(threads, n));
  auto run_part = [&](int part) { body(part, n * part / parts, n * (part + 1) / parts); };
  if (parts == 1) return run_part(0);
#pragma omp parallel num_threads(threads)
  for (int part = omp_get_thread_num(); part < parts; part += omp_get_num_threads()) run_part(part);
}

/// How many rows make a range worth a thread, when a row costs `cost` elementary operations.
inline int64_t row_grain(int64_t cost) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, cost));
}

inline int64_t round_up_64(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// A tensor seen as rows of its last `last` dims.
struct Rows {
  int64_t rows = 1, width = 1;
};
Rows rows_of(const Shape& extents, size_t last = 1);

/// Global row-major position of the local element 0 and the strides of the global tensor, for random numbers and
/// padding.
struct GlobalIndex {
  std::vector<int64_t> strides;
  int64_t first = 0;         ///< without the microbatch
  int64_t batch_stride = 0;  ///< per unit of batch_offset
  explicit GlobalIndex(const OperandLayout& layout);
};

/// The forms of a matmul whose request has been checked.
Result<KernelForms> product_forms(const KernelRequest& request, const CpuContext& context);

// One function per op kind, by family file.
#define ALTIPLANO_CPU_KERNEL(name)                                                           \
  Result<std::unique_ptr<Kernel>> make_##name([[maybe_unused]] const KernelRequest& request, \
                                              [[maybe_unused]] const CpuContext& context)
ALTIPLANO_CPU_KERNEL(matmul);
ALTIPLANO_CPU_KERNEL(add);
ALTIPLANO_CPU_KERNEL(multiply);
ALTIPLANO_CPU_KERNEL(add_bias);
ALTIPLANO_CPU_KERNEL(scale);
ALTIPLANO_CPU_KERNEL(cast);
ALTIPLANO_CPU_KERNEL(gelu);
ALTIPLANO_CPU_KERNEL(gelu_grad);
ALTIPLANO_CPU_KERNEL(bias_gelu);
ALTIPLANO_CPU_KERNEL(bias_gelu_grad);
ALTIPLANO_CPU_KERNEL(residual_add);
ALTIPLANO_CPU_KERNEL(dropout);
ALTIPLANO_CPU_KERNEL(fill);
ALTIPLANO_CPU_KERNEL(layer_norm);
ALTIPLANO_CPU_KERNEL(layer_norm_grad_input);
ALTIPLANO_CPU_KERNEL(layer_norm_grad_weight);
ALTIPLANO_CPU_KERNEL(softmax);
ALTIPLANO_CPU_KERNEL(softmax_grad);
ALTIPLANO_CPU_KERNEL(attention);
ALTIPLANO_CPU_KERNEL(attention_grad);
ALTIPLANO_CPU_KERNEL(embedding);
ALTIPLANO_CPU_KERNEL(embedding_grad);
ALTIPLANO_CPU_KERNEL(reduce_sum);
ALTIPLANO_CPU_KERNEL(reduce_max);
ALTIPLANO_CPU_KERNEL(broadcast_to);
ALTIPLANO_CPU_KERNEL(sum_squares);
ALTIPLANO_CPU_KERNEL(exp_sum);
ALTIPLANO_CPU_KERNEL(pick);
ALTIPLANO_CPU_KERNEL(nll);
ALTIPLANO_CPU_KERNEL(count_valid);
ALTIPLANO_CPU_KERNEL(cross_entropy_grad);
ALTIPLANO_CPU_KERNEL(reshape);
ALTIPLANO_CPU_KERNEL(transpose);
ALTIPLANO_CPU_KERNEL(slice);
ALTIPLANO_CPU_KERNEL(pad);
ALTIPLANO_CPU_KERNEL(concat);
ALTIPLANO_CPU_KERNEL(adamw);
ALTIPLANO_CPU_KERNEL(sgd);

}  // namespace altiplano::cpu
