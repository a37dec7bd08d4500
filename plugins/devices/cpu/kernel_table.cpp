#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

const KernelEntry* find_kernel_entry(const std::string& kind) {
  static const KernelEntry entries[] = {
      {"matmul", 2, 1, make_matmul},
      {"add", 2, 1, make_add},
      {"multiply", 2, 1, make_multiply},
      {"add_bias", 2, 1, make_add_bias},
      {"scale", 1, 1, make_scale},
      {"cast", 1, 1, make_cast},
      {"gelu", 1, 1, make_gelu},
      {"gelu_grad", 2, 1, make_gelu_grad},
      {"bias_gelu", 2, 1, make_bias_gelu},
      {"bias_gelu_grad", 3, 1, make_bias_gelu_grad},
      {"residual_add", 3, 1, make_residual_add},
      {"dropout", 1, 1, make_dropout},
      {"fill", 0, 1, make_fill},
      {"layer_norm", 3, 3, make_layer_norm},
      {"layer_norm_grad_input", 5, 1, make_layer_norm_grad_input},
      {"layer_norm_grad_weight", 4, 2, make_layer_norm_grad_weight},
      {"softmax", 1, 1, make_softmax},
      {"softmax_grad", 2, 1, make_softmax_grad},
      {"attention", -1, 2, make_attention},
      {"attention_grad", -1, 3, make_attention_grad},
      {"packed_attention", -1, 2, make_attention},
      {"packed_attention_grad", -1, 1, make_attention_grad},
      {"embedding", 2, 1, make_embedding},
      {"embedding_grad", 2, 1, make_embedding_grad},
      {"reduce_sum", 1, 1, make_reduce_sum},
      {"reduce_max", 1, 1, make_reduce_max},
      {"broadcast_to", 1, 1, make_broadcast_to},
      {"sum_squares", 1, 1, make_sum_squares},
      {"exp_sum", 2, 1, make_exp_sum},
      {"pick", 2, 1, make_pick},
      {"nll", 4, 1, make_nll},
      {"count_valid", 1, 1, make_count_valid},
      {"cross_entropy_grad", 5, 1, make_cross_entropy_grad},
      {"reshape", 1, 1, make_reshape},
      {"transpose", 1, 1, make_transpose},
      {"slice", 1, 1, make_slice},
      {"pad", 1, 1, make_pad},
      {"concat", -1, 1, make_concat},
      {"adamw", 4, 3, make_adamw},
      {"sgd", 3, 2, make_sgd},
  };
  for (const KernelEntry& entry : entries) {
    if (kind == entry.kind) return &entry;
  }
  return nullptr;
}

Status refuse_dtype(const KernelRequest& request, const char* supported) {
  std::string have;
  for (const auto* side : {&request.inputs, &request.outputs}) {
    if (side == &request.outputs) have += " ->";
    for (const OperandLayout& operand : *side)
      have += fmt::format(" {}{}", to_string(operand.dtype), to_string(operand.extents));
  }
  return invalid_argument("device/cpu has no kernel {} for{}: it computes {} in {} (f64: device/reference)",
                          request.kind, have, request.kind, supported);
}

bool same_dtypes(const std::vector<OperandLayout>& operands, DType dtype) {
  return std::all_of(operands.begin(), operands.end(), [&](const OperandLayout& o) { return o.dtype == dtype; });
}

Rows rows_of(const Shape& extents, size_t last) {
  Rows out;
  for (size_t i = 0; i < extents.size(); ++i) (i + last < extents.size() ? out.rows : out.width) *= extents[i];
  return out;
}

GlobalIndex::GlobalIndex(const OperandLayout& layout) : strides(layout.global.size(), 1) {
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * layout.global[i];
  for (size_t i = 0; i < strides.size(); ++i) first += strides[i] * layout.origin[i];
  if (layout.batch_dim >= 0) batch_stride = strides[static_cast<size_t>(layout.batch_dim)];
}

}  // namespace altiplano::cpu
