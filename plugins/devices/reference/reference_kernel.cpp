#include "plugins/devices/reference/reference_kernel.hpp"

#include "framework/base/text.hpp"

namespace altiplano::reference {

Index strides_of(const std::vector<int64_t>& extents) {
  Index strides{};
  int64_t stride = 1;
  for (size_t d = extents.size(); d-- > 0; stride *= extents[d]) strides[d] = stride;
  return strides;
}

int64_t num_rows(const std::vector<int64_t>& extents) {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < extents.size(); ++d) rows *= extents[d];
  return rows;
}

int64_t origin_of(const OperandLayout& layout, size_t dim, const KernelCall& call) {
  return layout.origin[dim] + (layout.batch_dim == static_cast<int>(dim) ? call.batch_offset : 0);
}

void store(DType dtype, void* data, int64_t index, double value) {
  if (dtype == DType::kF64)
    static_cast<double*>(data)[index] = value;
  else
    static_cast<float*>(data)[index] = static_cast<float>(value);
}

namespace {

class ReferenceKernel : public Kernel {
 public:
  explicit ReferenceKernel(Form form) : form_(std::move(form)) {}
  int64_t workspace_bytes() const noexcept override { return form_.workspace_bytes; }
  Status run(const KernelCall& call) noexcept override {
    form_.run(call);
    return Status::ok();
  }
  std::string describe() const override { return "plain loops"; }

 private:
  Form form_;
};

const Table& kernel_table() {
  static const Table table = [] {
    Table t;
    for (auto* add_family :
         {add_attention_kernels, add_batch_norm_kernels, add_convolution_kernels, add_embedding_kernels,
          add_expert_kernels, add_layout_kernels, add_loss_kernels, add_matmul_kernels, add_normalization_kernels,
          add_optimizer_kernels, add_pointwise_kernels, add_reduction_kernels})
      add_family(t);
    return t;
  }();
  return table;
}

Maker maker_of(const Makers& makers, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return makers.f32;
    case DType::kF64:
      return makers.f64;
    case DType::kI32:
      return makers.i32;
    case DType::kI64:
      return makers.i64;
    case DType::kBF16:
      return nullptr;
  }
  return nullptr;
}

/// The type that decides: of the first floating operand, inputs first; layout ops on integers have none.
DType deciding_dtype(const KernelRequest& request) {
  for (const auto* operands : {&request.inputs, &request.outputs})
    for (const OperandLayout& operand : *operands)
      if (is_floating(operand.dtype)) return operand.dtype;
  return request.inputs.empty() ? request.outputs[0].dtype : request.inputs[0].dtype;
}

Status check_operands(const KernelRequest& request, const Makers& makers, DType dtype) {
  for (const auto* operands : {&request.inputs, &request.outputs})
    for (const OperandLayout& operand : *operands) {
      if (operand.extents.size() > kMaxRank)
        return invalid_argument("device/reference: {} on a tensor of {} dims; at most {}", request.kind,
                                operand.extents.size(), kMaxRank);
      if (operand.dtype == DType::kBF16)
        return invalid_argument("device/reference: {} in bf16; there are f64 and f32", request.kind);
      if (is_floating(operand.dtype) && operand.dtype != dtype && !makers.mixes_types)
        return invalid_argument("device/reference: {} with operands of types {} and {}", request.kind, to_string(dtype),
                                to_string(operand.dtype));
    }
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_reference_kernel(const KernelRequest& request) {
  auto found = kernel_table().find(request.kind);
  if (found == kernel_table().end())
    return invalid_argument("device/reference: no kernel for op kind '{}'", request.kind);
  DType dtype = deciding_dtype(request);
  ALTIPLANO_RETURN_IF_ERROR(check_operands(request, found->second, dtype));
  Maker make = maker_of(found->second, dtype);
  if (!make) return invalid_argument("device/reference: no kernel for {} in {}", request.kind, to_string(dtype));
  return std::unique_ptr<Kernel>(std::make_unique<ReferenceKernel>(make(request)));
}

}  // namespace altiplano::reference
