// Routing of tokens to experts (GShard: Lepikhin et al., ICLR 2021, algorithm 1): the two likeliest experts of each
// token, as far as they have room. Everything else of a layer of experts is products: tokens are handed to experts by
// `[b,s,e,c] [b,s,d] -> [e,b,c,d]`, where moving a split from b to e is an all_to_all, and taken back by
// `[b,s,e,c] [e,b,c,d] -> [b,s,d]`.
#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

Status check_gates(const ValueType& gates, const Attributes& attributes) {
  ALTIPLANO_RETURN_IF_ERROR(check_rank(gates, 3, "the gates [b,s,e]"));
  ALTIPLANO_RETURN_IF_ERROR(check_floating(Types(&gates, 1)));
  if (gates.shape[2] < 2)
    return invalid_argument("{} expert; two are chosen, so there must be at least 2", gates.shape[2]);
  const int64_t capacity = attributes.get_int("capacity");
  if (capacity >= 1) return Status::ok();
  return invalid_argument("capacity is {}; an expert takes at least one token of a sample", capacity);
}

ValueType routes_of(const ValueType& gates, const Attributes& attributes) {
  const Shape& s = gates.shape;
  return {{s[0], s[1], s[2], attributes.get_int("capacity")}, gates.dtype};
}

/// Where tokens go is no function of the gates that could be differentiated; what comes back is weighted by them.
OpDefinition top2_gating() {
  OpDefinition definition;
  definition.kind = "top2_gating";
  definition.help =
      "the two likeliest of e experts, `capacity` tokens of a sample each: gates [b,s,e] -> weights, dispatch "
      "[b,s,e,c]";
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_gates(inputs[0], attributes));
    return std::vector<ValueType>(2, routes_of(inputs[0], attributes));
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[b,s,e] -> [b,s,e,c] [b,s,e,c]  whole: s,e,c";
  };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return 10.0 * static_cast<double>(num_elements(inputs[0].shape));
  };
  definition.gradient = [](GradientContext& context) {
    return std::vector<ValueId>{context.emit1(
        "top2_gating_grad", "gates", {context.op().inputs[0], context.output_gradient(0)}, context.op().attributes)};
  };
  definition.num_differentiable = 1;
  return definition;
}

OpDefinition top2_gating_grad() {
  OpDefinition definition;
  definition.kind = "top2_gating_grad";
  definition.help = "gradient of top2_gating: gates [b,s,e], dweights [b,s,e,c] -> dgates [b,s,e]";
  definition.num_inputs = 2;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_gates(inputs[0], attributes));
    const ValueType routes = routes_of(inputs[0], attributes);
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[1], routes.shape, "dweights [b,s,e,c]"));
    ALTIPLANO_RETURN_IF_ERROR(check_dtype(inputs[1], routes.dtype, "dweights"));
    return std::vector<ValueType>{inputs[0]};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[b,s,e] [b,s,e,c] -> [b,s,e]  whole: s,e,c";
  };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return 20.0 * static_cast<double>(num_elements(inputs[0].shape));
  };
  return definition;
}

}  // namespace

void add_expert_ops(std::vector<OpDefinition>& out) {
  out.push_back(top2_gating());
  out.push_back(top2_gating_grad());
}

}  // namespace altiplano
