#include "framework/graph/op_definition.hpp"

namespace altiplano {

std::vector<ValueType> types_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<ValueType> types;
  types.reserve(values.size());
  for (ValueId id : values) types.push_back({graph.value(id).shape, graph.value(id).dtype});
  return types;
}

namespace {

bool is_parameter_view(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.role == Role::kParameter) return true;
  if (!value.producer.is_valid()) return false;
  const Op& op = graph.op(value.producer);
  return OpTable::instance().get(op.kind).is_layout && is_parameter_view(graph, op.inputs[0]);
}

}  // namespace

DType GradientContext::gradient_dtype(ValueId value) const {
  DType dtype = graph_.value(value).dtype;
  return is_parameter_view(graph_, value) ? accumulate_dtype(dtype) : dtype;
}

std::vector<ValueId> GradientContext::emit(const std::string& kind, const std::string& suffix,
                                           std::vector<ValueId> inputs, Attributes attributes) {
  auto outputs = graph_.add_op(kind, op_.name + ".grad." + suffix, std::move(inputs), std::move(attributes), op_.layer,
                               Phase::kBackward);
  ALTIPLANO_ASSERT(outputs.is_ok(), "gradient of {} ({}): {}", op_.name, op_.kind, outputs.status().to_string());
  return std::move(outputs).value();
}

Bytes operand_bytes(std::span<const ValueType> inputs, std::span<const ValueType> outputs) {
  int64_t bytes = 0;
  for (auto operands : {inputs, outputs})
    for (const ValueType& type : operands) bytes += num_elements(type.shape) * size_of(type.dtype);
  return Bytes(bytes);
}

OpTable& OpTable::instance() {
  static OpTable table;
  return table;
}

OpTable::OpTable() {
  std::vector<OpDefinition> definitions;
  for (auto* add_family : {add_matmul_ops, add_elementwise_ops, add_normalization_ops, add_attention_ops,
                           add_embedding_ops, add_fused_ops, add_loss_ops, add_reduction_ops, add_layout_ops,
                           add_optimizer_ops, add_convolution_ops, add_batch_norm_ops, add_expert_ops})
    add_family(definitions);
  for (OpDefinition& definition : definitions) {
    Status status = add(std::move(definition));
    ALTIPLANO_ASSERT(status.is_ok(), "{}", status.to_string());
  }
}

const OpDefinition* OpTable::find(const std::string& kind) const {
  auto it = definitions_.find(kind);
  return it == definitions_.end() ? nullptr : &it->second;
}

const OpDefinition& OpTable::get(const std::string& kind) const {
  const OpDefinition* definition = find(kind);
  ALTIPLANO_ASSERT(definition != nullptr, "no op kind {}", kind);
  return *definition;
}

Status OpTable::add(OpDefinition definition) {
  if (definition.kind.empty() || !definition.infer || !definition.rule)
    return invalid_argument("op definition '{}': needs a kind, infer and rule", definition.kind);
  if (find(definition.kind)) return invalid_argument("op kind '{}' is defined already", definition.kind);
  std::string kind = definition.kind;
  definitions_.emplace(std::move(kind), std::move(definition));
  return Status::ok();
}

std::vector<std::string> OpTable::kinds() const {
  std::vector<std::string> kinds;
  for (const auto& [kind, definition] : definitions_) kinds.push_back(kind);
  return kinds;
}

}  // namespace altiplano
