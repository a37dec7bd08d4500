#include <array>

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
Status check_document_start(const ValueType& q, Types inputs, size_t at) {
  if (inputs.size() == at) return Status::ok();
  if (inputs.size() > at + 1) return invalid_argument("{} inputs; expected {} or {}", inputs.size(), at, at + 1);
  const ValueType& start = inputs[at];
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

/// One score per head, query and key.
double num_scores(std::span<const ValueType> qkv) {
  return static_cast<double>(num_elements(qkv[0].shape)) / static_cast<double>(qkv[0].shape[3]) *
         static_cast<double>(qkv[1].shape[1]);
}

/// q, k and v are three tensors, or lie side by side in one, qkv [b,s,3,h,k], as one product makes them: what the
/// fusion pass makes of three slices, three reshapes and an attention.
struct Form {
  bool packed = false;

  std::string kind() const { return packed ? "packed_attention" : "attention"; }
  /// Number of the input that is `input` where q, k and v are three.
  size_t number(size_t input) const { return packed ? input - 2 : input; }
  const char* q_text() const { return packed ? "qkv [b,s,3,h,k]" : "q [b,s,h,k], k, v [b,t,h,k]"; }
  const char* q_rule() const { return packed ? "[b,s,p,h,k]" : "[b,s,h,k] [b,t,h,k] [b,t,h,k]"; }
  const char* whole_rule() const { return packed ? "whole: s,p,k" : "whole: s,t,k"; }

  /// Types of q, k and v.
  std::array<ValueType, 3> parts(Types inputs) const {
    if (!packed) return {inputs[0], inputs[1], inputs[2]};
    const Shape& s = inputs[0].shape;
    const ValueType part{{s[0], s[1], s[3], s[4]}, inputs[0].dtype};
    return {part, part, part};
  }
  Status check(Types inputs, const Attributes& attributes, size_t num_inputs) const {
    ALTIPLANO_RETURN_IF_ERROR(check_num_inputs(inputs, number(num_inputs)));
    if (packed) {
      ALTIPLANO_RETURN_IF_ERROR(check_rank(inputs[0], 5, q_text()));
      const Shape& s = inputs[0].shape;
      ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[0], {s[0], s[1], 3, s[3], s[4]}, q_text()));
    }
    const auto qkv = parts(inputs);
    ALTIPLANO_RETURN_IF_ERROR(check_qkv(qkv, attributes));
    return check_document_start(qkv[0], inputs, number(num_inputs));
  }
  bool has_start(Types inputs, size_t num_inputs) const { return inputs.size() > number(num_inputs); }
};

std::vector<ValueId> attention_gradient(const Form& form, GradientContext& context) {
  const Op& op = context.op();
  if (context.output_gradient(1).is_valid())
    context.refuse(invalid_argument("op '{}': lse of {} is not differentiable", op.name, form.kind()));
  if (!context.output_gradient(0).is_valid()) return std::vector<ValueId>(op.inputs.size());
  const auto end_of_qkv = op.inputs.begin() + static_cast<std::ptrdiff_t>(form.number(3));
  std::vector<ValueId> inputs(op.inputs.begin(), end_of_qkv);
  inputs.insert(inputs.end(), {op.outputs[0], op.outputs[1], context.output_gradient(0)});
  inputs.insert(inputs.end(), end_of_qkv, op.inputs.end());  // where documents start
  std::vector<ValueId> gradients = context.emit(form.kind() + "_grad", "qkv", std::move(inputs), op.attributes);
  gradients.resize(op.inputs.size());  // where documents start has none
  return gradients;
}

OpDefinition attention(Form form) {
  OpDefinition definition;
  definition.kind = form.kind();
  definition.help =
      fmt::format("scaled dot-product attention: {}, maybe document_start [b,s] -> o [b,s,h,k], log-sum-exp [b,h,s]",
                  form.q_text());
  definition.num_inputs = -1;
  definition.infer = [form](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(form.check(inputs, attributes, 3));
    const ValueType q = form.parts(inputs)[0];
    return std::vector<ValueType>{q, lse_type(q)};
  };
  definition.rule = [form](Types inputs, Types, const Attributes&) -> std::string {
    return fmt::format("{}{} -> [b,s,h,k] [b,h,s]  {}", form.q_rule(), form.has_start(inputs, 3) ? " [b,s]" : "",
                       form.whole_rule());
  };
  definition.flops = [form](Types inputs, Types, const Attributes& attributes) {
    return 2 * product_flops(form.parts(inputs), attributes);
  };
  definition.inner_elements = [form](Types inputs) { return num_scores(form.parts(inputs)); };
  definition.gradient = [form](GradientContext& context) { return attention_gradient(form, context); };
  return definition;
}

OpDefinition attention_grad(Form form) {
  OpDefinition definition;
  definition.kind = form.kind() + "_grad";
  definition.help = fmt::format("gradient of {}: {}, o, lse, do, maybe document_start -> {}", form.kind(),
                                form.packed ? "qkv" : "q, k, v", form.packed ? "dqkv" : "dq, dk, dv");
  definition.num_inputs = -1;
  definition.infer = [form](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(form.check(inputs, attributes, 6));
    const ValueType q = form.parts(inputs)[0];
    const ValueType &o = inputs[form.number(3)], &lse = inputs[form.number(4)], &d_o = inputs[form.number(5)];
    ALTIPLANO_RETURN_IF_ERROR(check_shape(o, q.shape, "o"));
    ALTIPLANO_RETURN_IF_ERROR(check_shape(lse, lse_type(q).shape, "lse"));
    ALTIPLANO_RETURN_IF_ERROR(check_dtype(lse, acc(q), "lse"));
    ALTIPLANO_RETURN_IF_ERROR(check_shape(d_o, q.shape, "do"));
    return std::vector<ValueType>(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(form.number(3)));
  };
  definition.rule = [form](Types inputs, Types, const Attributes&) -> std::string {
    return fmt::format("{0} [b,s,h,k] [b,h,s] [b,s,h,k]{1} -> {0}  {2}", form.q_rule(),
                       form.has_start(inputs, 6) ? " [b,s]" : "", form.whole_rule());
  };
  definition.flops = [form](Types inputs, Types, const Attributes& attributes) {
    return 5 * product_flops(form.parts(inputs), attributes);
  };
  definition.inner_elements = [form](Types inputs) { return num_scores(form.parts(inputs)); };
  return definition;
}

}  // namespace

void add_attention_ops(std::vector<OpDefinition>& out) {
  for (const Form form : {Form{false}, Form{true}}) {
    out.push_back(attention(form));
    out.push_back(attention_grad(form));
  }
}

}  // namespace altiplano
