#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

OpDefinition add() {
  OpDefinition definition = pointwise("add", "x + y: two tensors of one shape -> z", 2, true, 1);
  definition.gradient = [](GradientContext& context) {
    return std::vector<ValueId>{context.output_gradient(), context.output_gradient()};
  };
  return definition;
}

OpDefinition multiply() {
  OpDefinition definition = pointwise("multiply", "x * y elementwise: two tensors of one shape -> z", 2, false, 1);
  definition.gradient = [](GradientContext& context) {
    std::vector<ValueId> gradients(2);
    const auto& inputs = context.op().inputs;
    if (context.wants_input(0)) gradients[0] = context.emit1("multiply", "x", {context.output_gradient(), inputs[1]});
    if (context.wants_input(1)) gradients[1] = context.emit1("multiply", "y", {context.output_gradient(), inputs[0]});
    return gradients;
  };
  return definition;
}

OpDefinition add_bias() {
  OpDefinition definition;
  definition.kind = "add_bias";
  definition.help = "x + bias, which matches the last dims of x: x, bias -> y";
  definition.num_inputs = 2;
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
    ALTIPLANO_RETURN_IF_ERROR(check_bias(inputs[0], inputs[1]));
    return std::vector<ValueType>{inputs[0]};
  };
  definition.rule = [](Types inputs, Types, const Attributes&) {
    const size_t rank = rank_of(inputs[0]);
    return fmt::format("{0} {1} -> {0}", operand(rank), last_dims(rank, rank_of(inputs[1])));
  };
  definition.gradient = [](GradientContext& context) {
    const ValueId dy = context.output_gradient();
    return std::vector<ValueId>{dy, bias_gradient(context, dy, 1)};
  };
  return definition;
}

OpDefinition scale() {
  OpDefinition definition = pointwise("scale", "x * factor: x -> y", 1, true, 1);
  definition.gradient = [](GradientContext& context) {
    return std::vector<ValueId>{context.emit1("scale", "x", {context.output_gradient()}, context.op().attributes)};
  };
  return definition;
}

OpDefinition cast() {
  OpDefinition definition = pointwise("cast", "x in another floating type: x -> y", 1, false, 1);
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
    if (!attributes.has("dtype")) return invalid_argument("needs the attribute dtype");
    ALTIPLANO_ASSIGN(DType dtype, dtype_attribute(attributes, inputs[0].dtype));
    if (!is_floating(dtype)) return invalid_argument("casts between floating types only, not to {}", to_string(dtype));
    return std::vector<ValueType>{{inputs[0].shape, dtype}};
  };
  definition.gradient = [](GradientContext& context) {
    std::string dtype = to_string(context.gradient_dtype(context.op().inputs[0]));
    return std::vector<ValueId>{context.emit1("cast", "x", {context.output_gradient()}, {{"dtype", dtype}})};
  };
  return definition;
}

void check_approximate(OpDefinition& definition) {
  auto infer = definition.infer;
  definition.infer = [infer](Types inputs, const Attributes& attributes) -> Inferred {
    std::string approximate = attributes.get_string("approximate", "tanh");
    if (approximate != "tanh" && approximate != "erf")
      return invalid_argument("approximate '{}' is unknown; there are tanh and erf", approximate);
    return infer(inputs, attributes);
  };
}

OpDefinition gelu() {
  OpDefinition definition = pointwise("gelu", "Gaussian error linear unit: x -> y", 1, false, 10);
  check_approximate(definition);
  definition.gradient = [](GradientContext& context) {
    return std::vector<ValueId>{
        context.emit1("gelu_grad", "x", {context.op().inputs[0], context.output_gradient()}, context.op().attributes)};
  };
  return definition;
}

OpDefinition gelu_grad() {
  OpDefinition definition = pointwise("gelu_grad", "gradient of gelu: x, dy -> dx", 2, false, 20);
  check_approximate(definition);
  return definition;
}

OpDefinition relu() {
  OpDefinition definition = pointwise("relu", "max(x, 0): x -> y", 1, false, 1);
  definition.gradient = [](GradientContext& context) {
    return std::vector<ValueId>{context.emit1("relu_grad", "x", {context.op().outputs[0], context.output_gradient()})};
  };
  return definition;
}

OpDefinition relu_grad() {
  return pointwise("relu_grad", "dy where y is above 0: y, dy -> dx", 2, false, 1);
}

OpDefinition dropout() {
  OpDefinition definition =
      pointwise("dropout", "zeroes elements with probability p, scales the others by 1/(1-p): x -> y", 1, false, 10);
  auto infer = definition.infer;
  definition.infer = [infer](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_stream(attributes, "p"));
    return infer(inputs, attributes);
  };
  definition.gradient = [](GradientContext& context) {
    return std::vector<ValueId>{context.emit1("dropout", "x", {context.output_gradient()}, context.op().attributes)};
  };
  return definition;
}

}  // namespace

void add_elementwise_ops(std::vector<OpDefinition>& out) {
  for (auto* make : {add, multiply, add_bias, scale, cast, gelu, gelu_grad, relu, relu_grad, dropout})
    out.push_back(make());
}

}  // namespace altiplano
