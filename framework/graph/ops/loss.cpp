// Cross entropy as pieces that each split over the vocabulary: the maximum (max over v), the sum of exponentials and
// the picked logit (sums over v) become partial results, so that a vocabulary-parallel loss follows from the rules.
#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

Shape tokens_of(const ValueType& logits) {
  return {logits.shape[0], logits.shape[1]};
}

Status check_logits(const ValueType& logits) {
  ALTIPLANO_RETURN_IF_ERROR(check_rank(logits, 3, "the logits [b,s,v]"));
  return check_floating(Types(&logits, 1));
}

Status check_labels(const ValueType& labels, const Shape& tokens) {
  ALTIPLANO_RETURN_IF_ERROR(check_shape(labels, tokens, "the labels"));
  return check_dtype(labels, DType::kI32, "the labels");
}

/// A value per token in accumulate dtype.
Status check_statistic(const ValueType& type, const Shape& tokens, DType dtype, const char* what) {
  ALTIPLANO_RETURN_IF_ERROR(check_shape(type, tokens, what));
  return check_dtype(type, dtype, what);
}

OpDefinition exp_sum() {
  OpDefinition definition;
  definition.kind = "exp_sum";
  definition.help = "sum over v of exp(logit - max): logits [b,s,v], max [b,s] -> [b,s]";
  definition.num_inputs = 2;
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_logits(inputs[0]));
    ALTIPLANO_RETURN_IF_ERROR(check_statistic(inputs[1], tokens_of(inputs[0]), acc(inputs[0]), "the maximum"));
    return std::vector<ValueType>{inputs[1]};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string { return "[b,s,v] [b,s] -> [b,s]  sum: v"; };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return 5.0 * static_cast<double>(num_elements(inputs[0].shape));
  };
  return definition;
}

OpDefinition pick() {
  OpDefinition definition;
  definition.kind = "pick";
  definition.help = "the label's logit, 0 where ignored: logits [b,s,v], labels [b,s] -> [b,s]";
  definition.num_inputs = 2;
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_logits(inputs[0]));
    ALTIPLANO_RETURN_IF_ERROR(check_labels(inputs[1], tokens_of(inputs[0])));
    return std::vector<ValueType>{{tokens_of(inputs[0]), acc(inputs[0])}};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string { return "[b,s,v] [b,s] -> [b,s]  sum: v"; };
  return definition;
}

/// The gradient skips the pieces and goes to the logits in one op: attribute `logits` names them.
std::vector<ValueId> nll_gradient(GradientContext& context) {
  const Op& op = context.op();
  std::string name = op.attributes.get_string("logits");
  ValueId logits = context.graph().find_value(name);
  if (!logits.is_valid()) {
    context.refuse(invalid_argument(
        "op '{}' (nll): to be differentiated it needs the attribute logits, the name of a value; got '{}'", op.name,
        name));
    return std::vector<ValueId>(4);
  }
  ValueId gradient = context.emit1("cross_entropy_grad", "logits",
                                   {logits, op.inputs[0], op.inputs[1], op.inputs[3], context.output_gradient()});
  context.add_gradient(logits, gradient);
  return std::vector<ValueId>(4);
}

OpDefinition nll() {
  OpDefinition definition;
  definition.kind = "nll";
  definition.help = "log(expsum) + max - picked, 0 where ignored: max, expsum, picked, labels [b,s] -> loss [b,s]";
  definition.num_inputs = 4;
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_rank(inputs[0], 2, "the maximum [b,s]"));
    ALTIPLANO_RETURN_IF_ERROR(check_equal(inputs.first(3)));
    ALTIPLANO_RETURN_IF_ERROR(check_labels(inputs[3], inputs[0].shape));
    return std::vector<ValueType>{inputs[0]};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string { return "[b,s] [b,s] [b,s] [b,s] -> [b,s]"; };
  definition.gradient = nll_gradient;
  return definition;
}

OpDefinition count_valid() {
  OpDefinition definition;
  definition.kind = "count_valid";
  definition.help = "number of labels that are not ignored: labels [b,s] -> []";
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_rank(inputs[0], 2, "the labels [b,s]"));
    ALTIPLANO_RETURN_IF_ERROR(check_dtype(inputs[0], DType::kI32, "the labels"));
    return std::vector<ValueType>{{{}, DType::kF64}};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string { return "[b,s] -> []  sum: b,s"; };
  return definition;
}

OpDefinition cross_entropy_grad() {
  OpDefinition definition;
  definition.kind = "cross_entropy_grad";
  definition.help = "(softmax - one_hot) * dloss: logits [b,s,v], max, expsum, labels, dloss [b,s] -> dlogits";
  definition.num_inputs = 5;
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_logits(inputs[0]));
    Shape tokens = tokens_of(inputs[0]);
    ALTIPLANO_RETURN_IF_ERROR(check_statistic(inputs[1], tokens, acc(inputs[0]), "the maximum"));
    ALTIPLANO_RETURN_IF_ERROR(check_statistic(inputs[2], tokens, acc(inputs[0]), "the sum of exponentials"));
    ALTIPLANO_RETURN_IF_ERROR(check_labels(inputs[3], tokens));
    ALTIPLANO_RETURN_IF_ERROR(check_statistic(inputs[4], tokens, acc(inputs[0]), "dloss"));
    return std::vector<ValueType>{inputs[0]};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[b,s,v] [b,s] [b,s] [b,s] [b,s] -> [b,s,v]";
  };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return 7.0 * static_cast<double>(num_elements(inputs[0].shape));
  };
  return definition;
}

}  // namespace

void add_loss_ops(std::vector<OpDefinition>& out) {
  for (auto* make : {exp_sum, pick, nll, count_valid, cross_entropy_grad}) out.push_back(make());
}

}  // namespace altiplano
