// Family matmul: an einsum as one oneDNN matmul primitive, made once per kernel. Operands are used where they lie when
// their strides allow it, else packed into workspace. bf16 operands are multiplied as bf16 where the CPU can, else
// widened to f32 while packing.
#include "plugins/devices/cpu/kernel.hpp"
#include "plugins/devices/cpu/product.hpp"

namespace altiplano::cpu {
namespace {

using dnnl::memory;

memory::data_type to_dnnl(DType dtype) {
  return dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc describe_view(const MatrixView& view, DType dtype) {
  memory::dims extents, strides;
  for (const ViewDim& dim : view.batch) extents.push_back(dim.extent), strides.push_back(dim.stride);
  for (const ViewDim& dim : {view.rows, view.columns}) extents.push_back(dim.extent), strides.push_back(dim.stride);
  return {extents, to_dnnl(dtype), strides};
}

/// One operand of the product: its type in memory, its type in the product, and where it is staged.
struct Operand {
  MatrixView view;
  DType stored = DType::kF32, computed = DType::kF32;
  int64_t workspace_offset = 0;
  memory handle;
};

class MatmulKernel final : public Kernel {
 public:
  /// Throws dnnl::error when oneDNN has no product for these types.
  MatmulKernel(const CpuContext& context, const ProductViews& views, bool swapped, std::array<DType, 3> stored,
               std::array<DType, 3> computed)
      : context_(context), swapped_(swapped), views_(views) {
    operands_ = {Operand{views.a, stored[kA], computed[kA], 0, {}}, Operand{views.b, stored[kB], computed[kB], 0, {}},
                 Operand{views.c, stored[kC], computed[kC], 0, {}}};
    for (Operand& operand : operands_) {
      const memory::desc layout = describe_view(operand.view, operand.computed);
      operand.handle = memory(layout, context_.engine, nullptr);
      if (!operand.view.staged) continue;
      operand.workspace_offset = workspace_;
      workspace_ += round_up_64(operand.view.num_elements() * size_of(operand.computed));
    }
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc description(
        dnnl::matmul::desc(operands_[kA].handle.get_desc(), operands_[kB].handle.get_desc(),
                           operands_[kC].handle.get_desc()),
        attributes, context_.engine);
    product_ = dnnl::matmul(description);
    scratch_ = memory(description.scratchpad_desc(), context_.engine, nullptr);
    scratch_offset_ = workspace_;
    workspace_ += round_up_64(static_cast<int64_t>(description.scratchpad_desc().get_size()));
    implementation_ = description.impl_info_str();
    arguments_ = {dnnl_exec_arg_t{DNNL_ARG_SRC, operands_[kA].handle.get()},
                  {DNNL_ARG_WEIGHTS, operands_[kB].handle.get()},
                  {DNNL_ARG_DST, operands_[kC].handle.get()},
                  {DNNL_ARG_SCRATCHPAD, scratch_.get()}};
  }

  int64_t workspace_bytes() const noexcept override { return workspace_; }

  std::string describe() const override {
    std::string staged;
    const char* names = swapped_ ? "bac" : "abc";
    for (size_t i : {kA, kB, kC}) {
      if (operands_[i].view.staged) staged += fmt::format(", {} staged", names[i]);
    }
    return fmt::format("gemm {}x{}x{}x{} {} {}{}", views_.batch, views_.m, views_.n, views_.k,
                       to_string(operands_[kA].computed), implementation_, staged);
  }

  Status run(const KernelCall& call) noexcept override try {
    omp_set_num_threads(context_.threads);
    const void* inputs[2] = {call.inputs[swapped_ ? 1 : 0], call.inputs[swapped_ ? 0 : 1]};
    for (size_t i : {kA, kB}) ALTIPLANO_RETURN_IF_ERROR(load(operands_[i], inputs[i], call));
    Operand& c = operands_[kC];
    c.handle.set_data_handle(c.view.staged ? staging(c, call) : call.outputs[0]);
    scratch_.set_data_handle(static_cast<char*>(call.workspace) + scratch_offset_);
    dnnl::error::wrap_c_api(dnnl_primitive_execute(product_.get(), context_.stream.get(),
                                                   static_cast<int>(arguments_.size()), arguments_.data()),
                            "matmul failed");
    context_.stream.wait();
    return c.view.staged ? unpack(c, call) : Status::ok();
  } catch (const std::exception& error) {
    return runtime_failure("device/cpu: matmul: {}", error.what());
  }

 private:
  static void* staging(const Operand& operand, const KernelCall& call) {
    return static_cast<char*>(call.workspace) + operand.workspace_offset;
  }

  Status load(Operand& operand, const void* from, const KernelCall& call) {
    if (!operand.view.staged) return operand.handle.set_data_handle(const_cast<void*>(from)), Status::ok();
    operand.handle.set_data_handle(staging(operand, call));
    return run_strided_copy(operand.view.packing, StridedMode::kWrite, operand.stored, from, operand.computed,
                            staging(operand, call), context_.threads);
  }

  Status unpack(const Operand& c, const KernelCall& call) {
    StridedCopy back = c.view.packing;
    for (size_t i = 0; i < back.num_dims; ++i) std::swap(back.dims[i].source_stride, back.dims[i].destination_stride);
    return run_strided_copy(back, StridedMode::kWrite, c.computed, staging(c, call), c.stored, call.outputs[0],
                            context_.threads);
  }

  CpuContext context_;
  bool swapped_;
  ProductViews views_;
  std::array<Operand, 3> operands_;
  dnnl::matmul product_;
  memory scratch_;
  std::array<dnnl_exec_arg_t, 4> arguments_;
  int64_t workspace_ = 0, scratch_offset_ = 0;
  std::string implementation_;
};

Result<std::unique_ptr<Kernel>> make_product(const CpuContext& context, const ProductLetters& letters,
                                             std::array<DType, 3> stored, DType compute) {
  // bf16 products may come out in f32; everything else must be in the product's own type.
  std::array<DType, 3> computed = {compute, compute, compute == DType::kBF16 ? stored[kC] : compute};
  std::array<bool, 3> must_stage;
  for (size_t i : {kA, kB, kC}) must_stage[i] = stored[i] != computed[i];
  ALTIPLANO_ASSIGN(const ProductViews views, plan_product(letters, must_stage));
  if (letters.swapped) std::swap(stored[kA], stored[kB]);
  return std::unique_ptr<Kernel>(std::make_unique<MatmulKernel>(context, views, letters.swapped, stored, computed));
}

/// A product with an empty dim: nothing to write, or zeros where nothing is summed.
Result<std::unique_ptr<Kernel>> make_empty(const CpuContext& context, int64_t bytes) {
  return kernel_of(
      [bytes, threads = context.threads](const KernelCall& call) {
        char* to = output<char>(call);
        parallel_ranges(threads, bytes, 1 << 18,
                        [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, char{0}); });
      },
      0, "empty");
}

bool is_empty(const ProductLetters& letters) {
  for (const auto* group : {&letters.batch, &letters.m, &letters.n, &letters.k}) {
    for (const ProductLetter& letter : *group) {
      if (letter.extent == 0) return true;
    }
  }
  return false;
}

}  // namespace

ALTIPLANO_CPU_KERNEL(matmul) {
  const OperandLayout &a = request.inputs[0], &b = request.inputs[1], &c = request.outputs[0];
  for (DType dtype : {a.dtype, b.dtype, c.dtype}) {
    if (dtype != DType::kF32 && dtype != DType::kBF16) return refuse_dtype(request, "f32 and bf16");
  }
  ALTIPLANO_ASSIGN(const ProductLetters letters,
                   ProductLetters::from(request.attributes.get_string("equation"), a.extents, b.extents, c.extents));
  if (is_empty(letters)) return make_empty(context, num_elements(c.extents) * size_of(c.dtype));
  const std::array<DType, 3> stored = {a.dtype, b.dtype, c.dtype};
  if (a.dtype == DType::kBF16 && b.dtype == DType::kBF16) {
    try {
      return make_product(context, letters, stored, DType::kBF16);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;  // no bf16 products on this CPU: in f32
    }
  }
  return make_product(context, letters, stored, DType::kF32);
}

}  // namespace altiplano::cpu
