// Batch normalization (Ioffe and Szegedy, ICML 2015) as pieces that split over samples: the sums over all samples, rows
// and columns become partial results, so that the statistics of a microbatch are exchanged between replicas as the
// rules say. `samples`: over how many samples of the global batch a statistic is; a plan cannot change it.
#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

Status check_batch_image(const ValueType& x, const Attributes& attributes) {
  ALTIPLANO_RETURN_IF_ERROR(check_rank(x, 4, "the image [n,y,x,c]"));
  ALTIPLANO_RETURN_IF_ERROR(check_floating(Types(&x, 1)));
  const int64_t samples = attributes.get_int("samples");
  if (samples >= 1) return Status::ok();
  return invalid_argument("samples is {}; statistics are over at least one sample", samples);
}

Status check_channels(const ValueType& type, const ValueType& x, DType dtype, const char* what) {
  ALTIPLANO_RETURN_IF_ERROR(check_shape(type, {x.shape[3]}, what));
  return check_dtype(type, dtype, what);
}

Status check_moments(Types two, const ValueType& x) {
  ALTIPLANO_RETURN_IF_ERROR(check_channels(two[0], x, acc(x), "the sums"));
  return check_channels(two[1], x, acc(x), "the sums of squares");
}

Status check_epsilon(const Attributes& attributes) {
  const double epsilon = attributes.get_float("epsilon", 1e-5);
  return epsilon >= 0 ? Status::ok() : invalid_argument("epsilon is {}; it must not be negative", epsilon);
}

std::function<double(Types, Types, const Attributes&)> flops_per_element(double flops) {
  return [flops](Types inputs, Types, const Attributes&) {
    return flops * static_cast<double>(num_elements(inputs[0].shape));
  };
}

/// Two values per channel, each the sum over everything else.
std::vector<ValueType> channel_sums(const ValueType& x) {
  return std::vector<ValueType>(2, ValueType{{x.shape[3]}, acc(x)});
}

/// Differentiated with the batch_norm that reads it, which goes to the image in one op.
OpDefinition batch_moments() {
  OpDefinition definition;
  definition.kind = "batch_moments";
  definition.help = "per channel over `samples` samples: image [n,y,x,c] -> sums [c], sums of squares [c]";
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_batch_image(inputs[0], attributes));
    return channel_sums(inputs[0]);
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string { return "[n,y,x,c] -> [c] [c]  sum: n,y,x"; };
  definition.flops = flops_per_element(3);
  definition.num_differentiable = 0;
  definition.takes_samples_together = true;
  return definition;
}

/// The sums that the image's gradient needs are those of weight and bias; as contributions to the parameters they go
/// through a scale by one, which leaves it to the rules whether they are kept partial there.
std::vector<ValueId> batch_norm_gradient(GradientContext& context) {
  const Op& op = context.op();
  const ValueId dy = context.output_gradient(), x = op.inputs[0], sums = op.inputs[1], squares = op.inputs[2];
  const auto of_sums = context.emit("batch_norm_grad_sums", "sums", {dy, x, sums, squares}, op.attributes);
  std::vector<ValueId> gradients(5);
  for (size_t i : {0, 1})
    if (context.wants_input(3 + i))
      gradients[3 + i] = context.emit1("scale", i == 0 ? "w" : "b", {of_sums[i]}, {{"factor", 1.0}});
  if (context.wants_input(0))
    gradients[0] = context.emit1("batch_norm_grad_input", "x",
                                 {dy, x, sums, squares, op.inputs[3], of_sums[0], of_sums[1]}, op.attributes);
  return gradients;
}

OpDefinition batch_norm() {
  OpDefinition definition;
  definition.kind = "batch_norm";
  definition.help =
      "normalizes channels by the moments of `samples` samples: image [n,y,x,c], sums, squares, weight, bias [c] -> y";
  definition.num_inputs = 5;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_batch_image(inputs[0], attributes));
    ALTIPLANO_RETURN_IF_ERROR(check_moments(inputs.subspan(1, 2), inputs[0]));
    ALTIPLANO_RETURN_IF_ERROR(check_channels(inputs[3], inputs[0], inputs[0].dtype, "the weight"));
    ALTIPLANO_RETURN_IF_ERROR(check_channels(inputs[4], inputs[0], inputs[0].dtype, "the bias"));
    ALTIPLANO_RETURN_IF_ERROR(check_epsilon(attributes));
    return std::vector<ValueType>{inputs[0]};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[n,y,x,c] [c] [c] [c] [c] -> [n,y,x,c]";
  };
  definition.flops = flops_per_element(4);
  definition.gradient = batch_norm_gradient;
  definition.takes_samples_together = true;
  return definition;
}

OpDefinition batch_norm_grad_sums() {
  OpDefinition definition;
  definition.kind = "batch_norm_grad_sums";
  definition.help = "gradient of batch_norm: dy, image [n,y,x,c], sums, squares [c] -> dweight [c], dbias [c]";
  definition.num_inputs = 4;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_batch_image(inputs[1], attributes));
    ALTIPLANO_RETURN_IF_ERROR(check_equal(inputs.first(2)));
    ALTIPLANO_RETURN_IF_ERROR(check_moments(inputs.subspan(2, 2), inputs[1]));
    return channel_sums(inputs[1]);
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[n,y,x,c] [n,y,x,c] [c] [c] -> [c] [c]  sum: n,y,x";
  };
  definition.flops = flops_per_element(5);
  definition.takes_samples_together = true;
  return definition;
}

OpDefinition batch_norm_grad_input() {
  OpDefinition definition;
  definition.kind = "batch_norm_grad_input";
  definition.help =
      "gradient of batch_norm: dy, image [n,y,x,c], sums, squares, weight, dweight, dbias [c] -> dx [n,y,x,c]";
  definition.num_inputs = 7;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_batch_image(inputs[1], attributes));
    ALTIPLANO_RETURN_IF_ERROR(check_equal(inputs.first(2)));
    ALTIPLANO_RETURN_IF_ERROR(check_moments(inputs.subspan(2, 2), inputs[1]));
    ALTIPLANO_RETURN_IF_ERROR(check_channels(inputs[4], inputs[1], inputs[1].dtype, "the weight"));
    ALTIPLANO_RETURN_IF_ERROR(check_moments(inputs.subspan(5, 2), inputs[1]));
    return std::vector<ValueType>{inputs[1]};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[n,y,x,c] [n,y,x,c] [c] [c] [c] [c] [c] -> [n,y,x,c]";
  };
  definition.flops = flops_per_element(9);
  definition.takes_samples_together = true;
  return definition;
}

}  // namespace

void add_batch_norm_ops(std::vector<OpDefinition>& out) {
  for (auto* make : {batch_moments, batch_norm, batch_norm_grad_sums, batch_norm_grad_input}) out.push_back(make());
}

}  // namespace altiplano
