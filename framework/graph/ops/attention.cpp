#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

Status check_qkv(Types inputs, const Attributes& attributes) {
  ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs.first(3)));
  ALTIPLANO_RETURN_IF_ERROR(check_stream(attributes, "dropout"));
  const ValueType &q = inputs[0], &k = inputs[1], &v = inputs[2];
  ALTIPLANO_RETURN_IF_ERROR(check_rank(q, 4, "q [b,s,h,k]"));
  ALTIPLANO_RETURN_IF_ERROR(check_rank(k, 4, "k [b,t,h,k]"));
  ALTIPLANO_RETURN_IF_ERROR(check_shape(k, {q.shape[0], k.shape[1], q.shape[2], q.shape[3]}, "k [b,t,h,k]"));
  ALTIPLANO_RETURN_IF_ERROR(check_shape(v, k.shape, "v"));
  ALTIPLANO_RETURN_IF_ERROR(check_dtype(k, q.dtype, "k"));
  return check_dtype(v, q.dtype, "v");
}

/// The last input may say from which position on each query sees keys.
Status check_document_start(Types inputs, size_t at) {
  if (inputs.size() == at) return Status::ok();
  if (inputs.size() > at + 1) return invalid_argument("{} inputs; expected {} or {}", inputs.size(), at, at + 1);
  const ValueType &q = inputs[0], &start = inputs[at];
  ALTIPLANO_RETURN_IF_ERROR(check_shape(start, {q.shape[0], q.shape[1]}, "document_start [b,s]"));
  return check_dtype(start, DType::kI32, "document_start");
}

Status check_num_inputs(Types inputs, size_t least) {
  if (inputs.size() >= least) return Status::ok();
  return invalid_argument("{} inputs; expected {} or {}", inputs.size(), least, least + 1);
}

ValueType lse_type(const ValueType& q) {
  return {{q.shape[0], q.shape[2], q.shape[1]}, acc(q)};
}

/// Multiply-adds of one [s,t] x k product over all heads, as FLOPs; a causal mask halves it.
double product_flops(Types inputs, const Attributes& attributes) {
  double elements = 2.0 * static_cast<double>(num_elements(inputs[0].shape)) * static_cast<double>(inputs[1].shape[1]);
  return attributes.get_int("causal") ? elements / 2 : elements;
}

std::vector<ValueId> attention_gradient(GradientContext& context) {
  const Op& op = context.op();
  if (context.output_gradient(1).is_valid())
    context.refuse(invalid_argument("op '{}': lse of attention is not differentiable", op.name));
  if (!context.output_gradient(0).is_valid()) return std::vector<ValueId>(op.inputs.size());
  std::vector<ValueId> inputs = {op.inputs[0],  op.inputs[1],  op.inputs[2],
                                 op.outputs[0], op.outputs[1], context.output_gradient(0)};
  if (op.inputs.size() > 3) inputs.push_back(op.inputs[3]);
  std::vector<ValueId> gradients = context.emit("attention_grad", "qkv", std::move(inputs), op.attributes);
  gradients.resize(op.inputs.size());  // where documents start has none
  return gradients;
}

OpDefinition attention() {
  OpDefinition definition;
  definition.kind = "attention";
  definition.help =
      "scaled dot-product attention: q [b,s,h,k], k, v [b,t,h,k], maybe document_start [b,s] -> o [b,s,h,k], "
      "log-sum-exp [b,h,s]";
  definition.num_inputs = -1;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_num_inputs(inputs, 3));
    ALTIPLANO_RETURN_IF_ERROR(check_qkv(inputs, attributes));
    ALTIPLANO_RETURN_IF_ERROR(check_document_start(inputs, 3));
    return std::vector<ValueType>{inputs[0], lse_type(inputs[0])};
  };
  definition.rule = [](Types inputs, Types, const Attributes&) -> std::string {
    return fmt::format("[b,s,h,k] [b,t,h,k] [b,t,h,k]{} -> [b,s,h,k] [b,h,s]  whole: s,t,k",
                       inputs.size() > 3 ? " [b,s]" : "");
  };
  definition.flops = [](Types inputs, Types, const Attributes& attributes) {
    return 2 * product_flops(inputs, attributes);
  };
  definition.gradient = attention_gradient;
  return definition;
}

OpDefinition attention_grad() {
  OpDefinition definition;
  definition.kind = "attention_grad";
  definition.help = "gradient of attention: q, k, v, o, lse, do, maybe document_start -> dq, dk, dv";
  definition.num_inputs = -1;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_num_inputs(inputs, 6));
    ALTIPLANO_RETURN_IF_ERROR(check_qkv(inputs, attributes));
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[3], inputs[0].shape, "o"));
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[4], lse_type(inputs[0]).shape, "lse"));
    ALTIPLANO_RETURN_IF_ERROR(check_dtype(inputs[4], acc(inputs[0]), "lse"));
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[5], inputs[0].shape, "do"));
    ALTIPLANO_RETURN_IF_ERROR(check_document_start(inputs, 6));
    return std::vector<ValueType>{inputs[0], inputs[1], inputs[2]};
  };
  definition.rule = [](Types inputs, Types, const Attributes&) -> std::string {
    return fmt::format(
        "[b,s,h,k] [b,t,h,k] [b,t,h,k] [b,s,h,k] [b,h,s] [b,s,h,k]{} -> [b,s,h,k] [b,t,h,k] [b,t,h,k]  whole: s,t,k",
        inputs.size() > 6 ? " [b,s]" : "");
  };
  definition.flops = [](Types inputs, Types, const Attributes& attributes) {
    return 5 * product_flops(inputs, attributes);
  };
  return definition;
}

// The same on q, k and v side by side, as one product makes them: what the fusion pass makes of three slices, three
// reshapes and an attention.

/// q (and k, v) within qkv [b,s,3,h,k].
ValueType part_of(const ValueType& qkv) {
  return {{qkv.shape[0], qkv.shape[1], qkv.shape[3], qkv.shape[4]}, qkv.dtype};
}

Status check_packed(Types inputs, const Attributes& attributes) {
  ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs.first(1)));
  ALTIPLANO_RETURN_IF_ERROR(check_stream(attributes, "dropout"));
  ALTIPLANO_RETURN_IF_ERROR(check_rank(inputs[0], 5, "qkv [b,s,3,h,k]"));
  const Shape& shape = inputs[0].shape;
  return check_shape(inputs[0], {shape[0], shape[1], 3, shape[3], shape[4]}, "qkv [b,s,3,h,k]");
}

double packed_product_flops(Types inputs, const Attributes& attributes) {
  const ValueType parts[2] = {part_of(inputs[0]), part_of(inputs[0])};
  return product_flops(parts, attributes);
}

std::vector<ValueId> packed_attention_gradient(GradientContext& context) {
  const Op& op = context.op();
  if (context.output_gradient(1).is_valid())
    context.refuse(invalid_argument("op '{}': lse of packed_attention is not differentiable", op.name));
  if (!context.output_gradient(0).is_valid()) return std::vector<ValueId>(op.inputs.size());
  std::vector<ValueId> inputs = {op.inputs[0], op.outputs[0], op.outputs[1], context.output_gradient(0)};
  if (op.inputs.size() > 1) inputs.push_back(op.inputs[1]);
  std::vector<ValueId> gradients = context.emit("packed_attention_grad", "qkv", std::move(inputs), op.attributes);
  gradients.resize(op.inputs.size());
  return gradients;
}

OpDefinition packed_attention() {
  OpDefinition definition;
  definition.kind = "packed_attention";
  definition.help = "attention on qkv [b,s,3,h,k], maybe document_start [b,s] -> o [b,s,h,k], log-sum-exp [b,h,s]";
  definition.num_inputs = -1;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_num_inputs(inputs, 1));
    ALTIPLANO_RETURN_IF_ERROR(check_packed(inputs, attributes));
    ALTIPLANO_RETURN_IF_ERROR(check_document_start(inputs, 1));
    const ValueType q = part_of(inputs[0]);
    return std::vector<ValueType>{q, lse_type(q)};
  };
  definition.rule = [](Types inputs, Types, const Attributes&) -> std::string {
    return fmt::format("[b,s,p,h,k]{} -> [b,s,h,k] [b,h,s]  whole: s,p,k", inputs.size() > 1 ? " [b,s]" : "");
  };
  definition.flops = [](Types inputs, Types, const Attributes& attributes) {
    return 2 * packed_product_flops(inputs, attributes);
  };
  definition.gradient = packed_attention_gradient;
  return definition;
}

OpDefinition packed_attention_grad() {
  OpDefinition definition;
  definition.kind = "packed_attention_grad";
  definition.help = "gradient of packed_attention: qkv, o, lse, do, maybe document_start -> dqkv";
  definition.num_inputs = -1;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_num_inputs(inputs, 4));
    ALTIPLANO_RETURN_IF_ERROR(check_packed(inputs, attributes));
    const ValueType q = part_of(inputs[0]);
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[1], q.shape, "o"));
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[2], lse_type(q).shape, "lse"));
    ALTIPLANO_RETURN_IF_ERROR(check_dtype(inputs[2], acc(q), "lse"));
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[3], q.shape, "do"));
    ALTIPLANO_RETURN_IF_ERROR(check_document_start(inputs, 4));
    return std::vector<ValueType>{inputs[0]};
  };
  definition.rule = [](Types inputs, Types, const Attributes&) -> std::string {
    return fmt::format("[b,s,p,h,k] [b,s,h,k] [b,h,s] [b,s,h,k]{} -> [b,s,p,h,k]  whole: s,p,k",
                       inputs.size() > 4 ? " [b,s]" : "");
  };
  definition.flops = [](Types inputs, Types, const Attributes& attributes) {
    return 5 * packed_product_flops(inputs, attributes);
  };
  return definition;
}

}  // namespace

void add_attention_ops(std::vector<OpDefinition>& out) {
  for (auto* make : {attention, attention_grad, packed_attention, packed_attention_grad}) out.push_back(make());
}

}  // namespace altiplano
