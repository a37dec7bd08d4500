// Family matmul: an einsum as one product, made once per kernel in one of the forms of product_form.hpp. bf16 operands
// are multiplied as bf16 where the CPU can, else widened to f32 while staging.
#include <optional>

#include "plugins/devices/cpu/kernel.hpp"
#include "plugins/devices/cpu/product_form.hpp"

namespace altiplano::cpu {
namespace {

using dnnl::memory;

/// What both doors of oneDNN need: operands where they lie, or staged in the workspace.
class ProductKernel : public Kernel {
 public:
  /// `workspace`: bytes, at least the plan's.
  ProductKernel(const CpuContext& context, ProductPlan plan, int64_t workspace)
      : context_(context), plan_(std::move(plan)), workspace_(workspace) {}

  int64_t workspace_bytes() const noexcept override { return workspace_; }

  std::string describe() const override {
    std::string staged;
    const char* names = plan_.swapped ? "bac" : "abc";
    for (size_t i : {kA, kB, kC})
      if (view(i).staged) staged += fmt::format(", {} staged", names[i]);
    return fmt::format("gemm {}x{}x{}x{} {} {} {}{}", plan_.views.batch, plan_.views.m, plan_.views.n, plan_.views.k,
                       to_string(plan_.types.computed[kA]), to_string(plan_.form), implementation(), staged);
  }

  Status run(const KernelCall& call) noexcept override try {
    omp_set_num_threads(context_.threads);
    const void* inputs[2] = {call.inputs[plan_.swapped ? 1 : 0], call.inputs[plan_.swapped ? 0 : 1]};
    for (size_t i : {kA, kB})
      if (view(i).staged) ALTIPLANO_RETURN_IF_ERROR(stage(i, inputs[i], call));
    const auto at = [&](size_t i, const void* lies) { return view(i).staged ? staging(i, call) : lies; };
    void* c = view(kC).staged ? staging(kC, call) : call.outputs[0];
    multiply(at(kA, inputs[kA]), at(kB, inputs[kB]), c, static_cast<char*>(call.workspace));
    return view(kC).staged ? unpack(call) : Status::ok();
  } catch (const std::exception& error) {
    return runtime_failure("device/cpu: matmul: {}", error.what());
  }

 protected:
  /// Throws dnnl::error.
  virtual void multiply(const void* a, const void* b, void* c, char* workspace) = 0;
  virtual std::string implementation() const = 0;

  const MatrixView& view(size_t i) const { return i == kA ? plan_.views.a : i == kB ? plan_.views.b : plan_.views.c; }
  CpuContext context_;
  ProductPlan plan_;

 private:
  void* staging(size_t i, const KernelCall& call) const {
    return static_cast<char*>(call.workspace) + plan_.staging[i];
  }

  Status stage(size_t i, const void* from, const KernelCall& call) {
    return run_strided_copy(view(i).packing, StridedMode::kWrite, plan_.types.stored[i], from, plan_.types.computed[i],
                            staging(i, call), context_.threads);
  }

  Status unpack(const KernelCall& call) {
    StridedCopy back = view(kC).packing;
    for (size_t i = 0; i < back.num_dims; ++i) std::swap(back.dims[i].source_stride, back.dims[i].destination_stride);
    return run_strided_copy(back, StridedMode::kWrite, plan_.types.computed[kC], staging(kC, call),
                            plan_.types.stored[kC], call.outputs[0], context_.threads);
  }

  int64_t workspace_;
};

/// oneDNN's matmul primitive, with the second operand packed first where that is its form.
class MatmulKernel final : public ProductKernel {
 public:
  /// Throws dnnl::error.
  MatmulKernel(const CpuContext& context, const ProductPlan& plan, int64_t workspace)
      : ProductKernel(context, plan, workspace), product_(plan.product) {
    const auto& engine = context_.engine;
    a_ = memory(plan.product.src_desc(), engine, nullptr);
    b_ = memory(plan.product.weights_desc(), engine, nullptr);
    c_ = memory(plan.product.dst_desc(), engine, nullptr);
    scratch_ = memory(plan.product.scratchpad_desc(), engine, nullptr);
    arguments_ = {dnnl_exec_arg_t{DNNL_ARG_SRC, a_.get()},
                  {DNNL_ARG_WEIGHTS, b_.get()},
                  {DNNL_ARG_DST, c_.get()},
                  {DNNL_ARG_SCRATCHPAD, scratch_.get()}};
    if (plan.form != ProductForm::kPacked) return;
    lies_ = memory(described(plan.views.b, plan.types.computed[kB]), engine, nullptr);
    pack_.emplace(lies_, b_);
    pack_arguments_ = {dnnl_exec_arg_t{DNNL_ARG_FROM, lies_.get()}, {DNNL_ARG_TO, b_.get()}};
  }

 private:
  static memory::desc described(const MatrixView& view, DType dtype) {
    memory::dims extents, strides;
    for (const ViewDim& dim : view.batch) extents.push_back(dim.extent), strides.push_back(dim.stride);
    for (const ViewDim& dim : {view.rows, view.columns}) extents.push_back(dim.extent), strides.push_back(dim.stride);
    return {extents, dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32, strides};
  }

  template <size_t N>
  void execute(const dnnl::primitive& primitive, const std::array<dnnl_exec_arg_t, N>& arguments, const char* what) {
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), context_.stream.get(),
                                                   static_cast<int>(arguments.size()), arguments.data()),
                            what);
  }

  void multiply(const void* a, const void* b, void* c, char* workspace) override {
    a_.set_data_handle(const_cast<void*>(a));
    c_.set_data_handle(c);
    scratch_.set_data_handle(workspace + plan_.scratch);
    b_.set_data_handle(pack_ ? workspace + plan_.packed : const_cast<void*>(b));
    if (pack_) {
      lies_.set_data_handle(const_cast<void*>(b));
      execute(*pack_, pack_arguments_, "packing an operand failed");
    }
    execute(product_, arguments_, "matmul failed");
    context_.stream.wait();
  }

  std::string implementation() const override { return plan_.product.impl_info_str(); }

  dnnl::matmul product_;
  std::optional<dnnl::reorder> pack_;
  memory a_, b_, c_, scratch_, lies_;
  std::array<dnnl_exec_arg_t, 4> arguments_;
  std::array<dnnl_exec_arg_t, 2> pack_arguments_;
};

class SgemmKernel final : public ProductKernel {
 public:
  using ProductKernel::ProductKernel;

 private:
  static bool is_row_major(const MatrixView& view) { return view.columns.stride == 1; }
  static int64_t leading(const MatrixView& view) { return is_row_major(view) ? view.rows.stride : view.columns.stride; }

  void multiply(const void* a, const void* b, void* c, char*) override {
    const auto& views = plan_.views;
    dnnl::error::wrap_c_api(
        dnnl_sgemm(is_row_major(views.a) ? 'N' : 'T', is_row_major(views.b) ? 'N' : 'T', views.m, views.n, views.k,
                   1.0f, static_cast<const float*>(a), leading(views.a), static_cast<const float*>(b), leading(views.b),
                   0.0f, static_cast<float*>(c), views.c.rows.stride),
        "sgemm failed");
  }

  std::string implementation() const override { return "dnnl_sgemm"; }
};

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

/// All forms of a request that check_request has accepted; none: a dim is empty.
Result<std::vector<ProductPlan>> plans_of(const KernelRequest& request, const CpuContext& context) {
  const OperandLayout &a = request.inputs[0], &b = request.inputs[1], &c = request.outputs[0];
  for (DType dtype : {a.dtype, b.dtype, c.dtype}) {
    if (dtype != DType::kF32 && dtype != DType::kBF16) return refuse_dtype(request, "f32 and bf16");
  }
  ALTIPLANO_ASSIGN(const ProductLetters letters,
                   ProductLetters::from(request.attributes.get_string("equation"), a.extents, b.extents, c.extents));
  if (is_empty(letters)) return std::vector<ProductPlan>();
  const std::array<DType, 3> stored = {a.dtype, b.dtype, c.dtype};
  if (a.dtype == DType::kBF16 && b.dtype == DType::kBF16) {
    try {
      return plan_product_forms(context, letters, stored, DType::kBF16);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;  // no bf16 products on this CPU: in f32
    }
  }
  return plan_product_forms(context, letters, stored, DType::kF32);
}

/// "bf16 bf16 f32 as f32 1024x768x3072 nn"
std::string shape_of(const ProductPlan& plain) {
  const auto& [stored, computed] = plain.types;
  const bool alike = stored == computed && stored[kA] == stored[kB] && stored[kB] == stored[kC];
  const std::string types = alike ? to_string(stored[kA])
                                  : fmt::format("{} {} {} as {}", to_string(stored[kA]), to_string(stored[kB]),
                                                to_string(stored[kC]), to_string(computed[kA]));
  return fmt::format("{} {}", types, shape_text(plain.views));
}

}  // namespace

Result<KernelForms> product_forms(const KernelRequest& request, const CpuContext& context) {
  ALTIPLANO_ASSIGN(const std::vector<ProductPlan> plans, plans_of(request, context));
  KernelForms forms;
  if (plans.size() < 2) return forms;
  forms.shape = shape_of(plans.front());
  for (const ProductPlan& plan : plans) forms.names.emplace_back(to_string(plan.form));
  return forms;
}

ALTIPLANO_CPU_KERNEL(matmul) {
  ALTIPLANO_ASSIGN(const std::vector<ProductPlan> plans, plans_of(request, context));
  const OperandLayout& c = request.outputs[0];
  if (plans.empty()) return make_empty(context, num_elements(c.extents) * size_of(c.dtype));
  int64_t workspace = 0;
  std::string names;
  for (const ProductPlan& plan : plans) {
    workspace = std::max(workspace, plan.workspace);
    names += (names.empty() ? "" : ", ") + std::string(to_string(plan.form));
  }
  for (const ProductPlan& plan : plans) {
    if (!request.form.empty() && request.form != to_string(plan.form)) continue;
    if (plan.form == ProductForm::kSgemm)
      return std::unique_ptr<Kernel>(std::make_unique<SgemmKernel>(context, plan, workspace));
    return std::unique_ptr<Kernel>(std::make_unique<MatmulKernel>(context, plan, workspace));
  }
  return invalid_argument("device/cpu has no matmul {} in the form '{}'; valid: {}", shape_of(plans.front()),
                          request.form, names);
}

}  // namespace altiplano::cpu
