#include "plugins/devices/cpu/product_form.hpp"

#include <limits>

namespace altiplano::cpu {
namespace {

using dnnl::memory;

memory::data_type to_dnnl(DType dtype) {
  return dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::dims extents_of(const MatrixView& view) {
  memory::dims extents;
  for (const ViewDim& dim : view.batch) extents.push_back(dim.extent);
  extents.push_back(view.rows.extent);
  extents.push_back(view.columns.extent);
  return extents;
}

memory::desc describe_view(const MatrixView& view, DType dtype) {
  memory::dims strides;
  for (const ViewDim& dim : view.batch) strides.push_back(dim.stride);
  strides.push_back(view.rows.stride);
  strides.push_back(view.columns.stride);
  return {extents_of(view), to_dnnl(dtype), strides};
}

/// oneDNN's description of the product; `any`: in its own layout of the second operand.
dnnl::matmul::primitive_desc describe_product(const CpuContext& context, const ProductPlan& plan, bool any) {
  const auto& computed = plan.types.computed;
  const MatrixView &a = plan.views.a, &b = plan.views.b, &c = plan.views.c;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const memory::desc weights = any ? memory::desc(extents_of(b), to_dnnl(computed[kB]), memory::format_tag::any)
                                   : describe_view(b, computed[kB]);
  return {dnnl::matmul::desc(describe_view(a, computed[kA]), weights, describe_view(c, computed[kC])), attributes,
          context.engine};
}

/// Offsets in the workspace.
void lay_out(ProductPlan& plan) {
  const std::array<const MatrixView*, 3> views = {&plan.views.a, &plan.views.b, &plan.views.c};
  for (size_t i : {kA, kB, kC}) {
    plan.staging[i] = plan.workspace;
    if (views[i]->staged) plan.workspace += round_up_64(views[i]->num_elements() * size_of(plan.types.computed[i]));
  }
  plan.packed = plan.workspace;
  if (plan.form == ProductForm::kPacked)
    plan.workspace += round_up_64(static_cast<int64_t>(plan.product.weights_desc().get_size()));
  plan.scratch = plan.workspace;
  if (plan.form != ProductForm::kSgemm)
    plan.workspace += round_up_64(static_cast<int64_t>(plan.product.scratchpad_desc().get_size()));
}

bool is_matrix(const MatrixView& view) {
  return view.rows.extent > 1 && view.columns.extent > 1;
}

bool is_small(const MatrixView& view, DType dtype) {
  return view.num_elements() * size_of(dtype) <= kMostCopied;
}

/// Gathers the forms of one product.
class FormsOf {
 public:
  FormsOf(const CpuContext& context, const ProductLetters& letters, std::array<bool, 3> must_stage, ProductPlan plain)
      : context_(context), letters_(letters), must_stage_(must_stage), plain_(std::move(plain)) {}

  Result<std::vector<ProductPlan>> all() {
    plain_.product = describe_product(context_, plain_, false);
    forms_.push_back(plain_);
    add_packed();
    ALTIPLANO_RETURN_IF_ERROR(add_turned(ProductForm::kTurnedB, kB, plain_.views.b));
    ALTIPLANO_RETURN_IF_ERROR(add_turned(ProductForm::kTurnedA, kA, plain_.views.a));
    add_sgemm();
    for (ProductPlan& plan : forms_) lay_out(plan);
    return std::move(forms_);
  }

 private:
  void add_packed() {
    const MatrixView& b = plain_.views.b;
    if (b.staged || !is_matrix(b) || !is_small(b, plain_.types.computed[kB])) return;
    ProductPlan plan = plain_;
    plan.form = ProductForm::kPacked;
    plan.product = describe_product(context_, plan, true);
    if (plan.product.weights_desc() != plain_.product.weights_desc()) forms_.push_back(std::move(plan));
  }

  Status add_turned(ProductForm form, ProductOperand operand, const MatrixView& view) {
    if (!is_matrix(view) || !is_small(view, plain_.types.computed[operand])) return Status::ok();
    ProductPlan plan = plain_;
    plan.form = form;
    std::array<bool, 3> turned{};
    turned[operand] = true;
    ALTIPLANO_ASSIGN(plan.views, plan_product(letters_, must_stage_, turned));
    try {
      plan.product = describe_product(context_, plan, false);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      return Status::ok();
    }
    forms_.push_back(std::move(plan));
    return Status::ok();
  }

  void add_sgemm() {
    for (DType dtype : plain_.types.computed)
      if (dtype != DType::kF32) return;
    if (plain_.views.batch != 1) return;
    ProductPlan plan = plain_;
    plan.form = ProductForm::kSgemm;
    plan.product = {};
    forms_.push_back(std::move(plan));
  }

  const CpuContext& context_;
  const ProductLetters& letters_;
  std::array<bool, 3> must_stage_;
  ProductPlan plain_;
  std::vector<ProductPlan> forms_;
};

}  // namespace

const char* to_string(ProductForm form) {
  switch (form) {
    case ProductForm::kPlain:
      return "plain";
    case ProductForm::kPacked:
      return "packed";
    case ProductForm::kTurnedB:
      return "turned_b";
    case ProductForm::kTurnedA:
      return "turned_a";
    case ProductForm::kSgemm:
      return "sgemm";
  }
  return "";
}

Result<std::vector<ProductPlan>> plan_product_forms(const CpuContext& context, const ProductLetters& letters,
                                                    std::array<DType, 3> stored, DType compute) {
  ProductPlan plain;
  plain.swapped = letters.swapped;
  // bf16 products may come out in f32; everything else must be in the product's own type.
  plain.types.computed = {compute, compute, compute == DType::kBF16 ? stored[kC] : compute};
  std::array<bool, 3> must_stage;
  for (size_t i : {kA, kB, kC}) must_stage[i] = stored[i] != plain.types.computed[i];
  ALTIPLANO_ASSIGN(plain.views, plan_product(letters, must_stage));
  for (int64_t extent : {plain.views.batch, plain.views.m, plain.views.n, plain.views.k})
    if (extent > std::numeric_limits<int32_t>::max())
      return invalid_argument("device/cpu: a product of {} has a dim of {}; at most {} are possible",
                              shape_text(plain.views), extent, std::numeric_limits<int32_t>::max());
  if (letters.swapped) std::swap(stored[kA], stored[kB]);
  plain.types.stored = stored;
  return FormsOf(context, letters, must_stage, std::move(plain)).all();
}

}  // namespace altiplano::cpu
