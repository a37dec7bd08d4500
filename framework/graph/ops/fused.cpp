// Several elementwise ops in one pass over memory. Models do not write them: the fusion pass (graph/fusion.hpp) does,
// for devices that have kernels of them.
#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

Status check_form(const Attributes& attributes) {
  const std::string form = attributes.get_string("approximate", "tanh");
  if (form == "tanh" || form == "erf") return Status::ok();
  return invalid_argument("approximate '{}' is unknown; there are tanh and erf", form);
}

/// What bias_gelu and its gradient have in common: they differ in the last input, dy.
OpDefinition on_x_and_bias(const std::string& kind, const std::string& help, int num_inputs, double flops_per_element) {
  OpDefinition definition;
  definition.kind = kind;
  definition.help = help;
  definition.num_inputs = num_inputs;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
    ALTIPLANO_RETURN_IF_ERROR(check_bias(inputs[0], inputs[1]));
    for (const ValueType& dy : inputs.subspan(2)) {
      ALTIPLANO_RETURN_IF_ERROR(check_shape(dy, inputs[0].shape, "dy"));
      ALTIPLANO_RETURN_IF_ERROR(check_dtype(dy, inputs[0].dtype, "dy"));
    }
    ALTIPLANO_RETURN_IF_ERROR(check_form(attributes));
    return std::vector<ValueType>{inputs[0]};
  };
  definition.rule = [](Types inputs, Types, const Attributes&) {
    const size_t rank = rank_of(inputs[0]);
    return fmt::format("{0} {1}{2} -> {0}", operand(rank), last_dims(rank, rank_of(inputs[1])),
                       inputs.size() > 2 ? " " + operand(rank) : "");
  };
  definition.flops = [flops_per_element](Types inputs, Types, const Attributes&) {
    return flops_per_element * static_cast<double>(num_elements(inputs[0].shape));
  };
  return definition;
}

OpDefinition bias_gelu() {
  OpDefinition definition =
      on_x_and_bias("bias_gelu", "gelu of x + bias, which matches the last dims of x: x, bias -> y", 2, 11);
  definition.gradient = [](GradientContext& context) {
    const Op& op = context.op();
    const ValueId dx =
        context.emit1("bias_gelu_grad", "x", {op.inputs[0], op.inputs[1], context.output_gradient()}, op.attributes);
    return std::vector<ValueId>{dx, bias_gradient(context, dx, 1)};
  };
  return definition;
}

OpDefinition bias_gelu_grad() {
  return on_x_and_bias("bias_gelu_grad", "gradient of bias_gelu: x, bias, dy -> dx", 3, 21);
}

OpDefinition residual_add() {
  OpDefinition definition;
  definition.kind = "residual_add";
  definition.help = "residual + dropout(x + bias), bias as the last dims of x: x, residual, bias -> y";
  definition.num_inputs = 3;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[1], inputs[0].shape, "residual"));
    ALTIPLANO_RETURN_IF_ERROR(check_dtype(inputs[1], inputs[0].dtype, "residual"));
    ALTIPLANO_RETURN_IF_ERROR(check_bias(inputs[0], inputs[2]));
    ALTIPLANO_RETURN_IF_ERROR(check_stream(attributes, "p"));
    return std::vector<ValueType>{inputs[0]};
  };
  definition.rule = [](Types inputs, Types, const Attributes&) {
    const size_t rank = rank_of(inputs[0]);
    return fmt::format("{0} {0} {1} -> {0}", operand(rank), last_dims(rank, rank_of(inputs[2])));
  };
  definition.flops = [](Types inputs, Types, const Attributes& attributes) {
    const double per_element = attributes.get_float("p") > 0 ? 12 : 2;
    return per_element * static_cast<double>(num_elements(inputs[0].shape));
  };
  definition.gradient = [](GradientContext& context) {
    const ValueId dy = context.output_gradient();
    const bool drops = context.op().attributes.get_float("p") > 0;
    const ValueId dx = drops ? context.emit1("dropout", "x", {dy}, context.op().attributes) : dy;
    return std::vector<ValueId>{dx, dy, bias_gradient(context, dx, 2)};
  };
  return definition;
}

}  // namespace

void add_fused_ops(std::vector<OpDefinition>& out) {
  for (auto* make : {bias_gelu, bias_gelu_grad, residual_add}) out.push_back(make());
}

}  // namespace altiplano
