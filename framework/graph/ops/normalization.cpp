#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

Shape leading(const ValueType& x) {
  return Shape(x.shape.begin(), x.shape.end() - 1);
}

Status check_last_dim(Types inputs) {
  ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
  if (inputs[0].shape.empty()) return invalid_argument("needs at least one dim, got a scalar");
  return Status::ok();
}

Inferred infer_layer_norm(Types inputs, const Attributes& attributes) {
  ALTIPLANO_RETURN_IF_ERROR(check_last_dim(inputs));
  const ValueType& x = inputs[0];
  ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[1], {x.shape.back()}, "the weight"));
  ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[2], {x.shape.back()}, "the bias"));
  for (size_t i : {1, 2})
    ALTIPLANO_RETURN_IF_ERROR(check_dtype(inputs[i], x.dtype, i == 1 ? "the weight" : "the bias"));
  if (attributes.get_float("epsilon", 1e-5) < 0)
    return invalid_argument("epsilon is {}; it must not be negative", attributes.get_float("epsilon"));
  return std::vector<ValueType>{x, {leading(x), acc(x)}, {leading(x), acc(x)}};
}

std::vector<ValueId> layer_norm_gradient(GradientContext& context) {
  const Op& op = context.op();
  if (context.output_gradient(1).is_valid() || context.output_gradient(2).is_valid())
    context.refuse(invalid_argument("op '{}': mean and rstd of layer_norm are not differentiable", op.name));
  ValueId dy = context.output_gradient(0), x = op.inputs[0], mean = op.outputs[1], rstd = op.outputs[2];
  std::vector<ValueId> gradients(3);
  if (!dy.is_valid()) return gradients;
  if (context.wants_input(0))
    gradients[0] = context.emit1("layer_norm_grad_input", "x", {dy, x, op.inputs[1], mean, rstd});
  if (context.wants_input(1) || context.wants_input(2)) {
    auto weights = context.emit("layer_norm_grad_weight", "w", {dy, x, mean, rstd});
    gradients[1] = weights[0];
    gradients[2] = weights[1];
  }
  return gradients;
}

OpDefinition layer_norm() {
  OpDefinition definition;
  definition.kind = "layer_norm";
  definition.help = "normalizes the last dim: x, weight, bias -> y, mean, rstd";
  definition.num_inputs = 3;
  definition.infer = infer_layer_norm;
  definition.rule = [](Types inputs, Types, const Attributes&) {
    size_t n = rank_of(inputs[0]) - 1;
    return fmt::format("{0} [e] [e] -> {0} {1} {1}  whole: e", with_last(n, "e"), operand(n));
  };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return 8.0 * static_cast<double>(num_elements(inputs[0].shape));
  };
  definition.gradient = layer_norm_gradient;
  return definition;
}

/// The statistics that follow dy, x (and w) in the gradients' inputs.
Status check_statistics(Types inputs, size_t first) {
  ALTIPLANO_RETURN_IF_ERROR(check_last_dim(inputs));
  ALTIPLANO_RETURN_IF_ERROR(check_equal(inputs.first(2)));
  for (size_t i = first; i < first + 2; ++i) {
    const char* what = i == first ? "the mean" : "the rstd";
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[i], leading(inputs[1]), what));
    ALTIPLANO_RETURN_IF_ERROR(check_dtype(inputs[i], acc(inputs[1]), what));
  }
  return Status::ok();
}

OpDefinition layer_norm_grad_input() {
  OpDefinition definition;
  definition.kind = "layer_norm_grad_input";
  definition.help = "gradient of layer_norm: dy, x, weight, mean, rstd -> dx";
  definition.num_inputs = 5;
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_statistics(inputs, 3));
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[2], {inputs[1].shape.back()}, "the weight"));
    return std::vector<ValueType>{inputs[1]};
  };
  definition.rule = [](Types inputs, Types, const Attributes&) {
    size_t n = rank_of(inputs[0]) - 1;
    return fmt::format("{0} {0} [e] {1} {1} -> {0}  whole: e", with_last(n, "e"), operand(n));
  };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return 12.0 * static_cast<double>(num_elements(inputs[0].shape));
  };
  return definition;
}

OpDefinition layer_norm_grad_weight() {
  OpDefinition definition;
  definition.kind = "layer_norm_grad_weight";
  definition.help = "gradient of layer_norm: dy, x, mean, rstd -> dweight, dbias";
  definition.num_inputs = 4;
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_statistics(inputs, 2));
    ValueType weight{{inputs[1].shape.back()}, acc(inputs[1])};
    return std::vector<ValueType>{weight, weight};
  };
  definition.rule = [](Types inputs, Types, const Attributes&) {
    size_t n = rank_of(inputs[0]) - 1;
    std::string rule = fmt::format("{0} {0} {1} {1} -> [e] [e]", with_last(n, "e"), operand(n));
    return n == 0 ? rule : rule + "  sum: " + dims(n);
  };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return 5.0 * static_cast<double>(num_elements(inputs[0].shape));
  };
  return definition;
}

OpDefinition softmax_like(const std::string& kind, const std::string& help, int num_inputs, double flops) {
  OpDefinition definition = pointwise(kind, help, num_inputs, false, flops);
  auto infer = definition.infer;
  definition.infer = [infer](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_last_dim(inputs));
    return infer(inputs, attributes);
  };
  definition.rule = [](Types inputs, Types, const Attributes&) {
    std::vector<std::string> operands(inputs.size(), with_last(rank_of(inputs[0]) - 1, "e"));
    return fmt::format("{} -> {}  whole: e", fmt::join(operands, " "), operands[0]);
  };
  return definition;
}

OpDefinition softmax() {
  OpDefinition definition = softmax_like("softmax", "softmax over the last dim: x -> y", 1, 8);
  definition.gradient = [](GradientContext& context) {
    return std::vector<ValueId>{
        context.emit1("softmax_grad", "x", {context.op().outputs[0], context.output_gradient()})};
  };
  return definition;
}

OpDefinition softmax_grad() {
  return softmax_like("softmax_grad", "gradient of softmax: y, dy -> dx", 2, 4);
}

}  // namespace

void add_normalization_ops(std::vector<OpDefinition>& out) {
  for (auto* make : {layer_norm, layer_norm_grad_input, layer_norm_grad_weight, softmax, softmax_grad})
    out.push_back(make());
}

}  // namespace altiplano
