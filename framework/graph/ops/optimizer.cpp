#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

/// w, g and the moments in accumulate dtype, all of one shape; outputs lie over the inputs named by `aliases`.
OpDefinition update(const std::string& kind, const std::string& help, int num_inputs, std::vector<int> aliases,
                    double flops) {
  OpDefinition definition = pointwise(kind, help, num_inputs, false, flops);
  definition.infer = [aliases](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_equal(inputs));
    if (inputs[0].dtype != acc(inputs[0]))
      return invalid_argument("updates weights in f32 or f64, not in {}; keep a master weight",
                              to_string(inputs[0].dtype));
    return std::vector<ValueType>(aliases.size(), inputs[0]);
  };
  definition.rule = [](Types inputs, Types outputs, const Attributes&) {
    return pointwise_rule(rank_of(inputs[0]), inputs.size(), outputs.size(), false);
  };
  definition.aliases = std::move(aliases);
  return definition;
}

}  // namespace

void add_optimizer_ops(std::vector<OpDefinition>& out) {
  out.push_back(update("adamw", "AdamW step in place: w, g, m, v -> w', m', v'", 4, {0, 2, 3}, 15));
  out.push_back(update("sgd", "SGD step with momentum in place: w, g, m -> w', m'", 3, {0, 2}, 6));
}

}  // namespace altiplano
