#include "framework/sharding/tensor_parallel.hpp"

#include <set>

#include "framework/base/text.hpp"

namespace altiplano {

namespace {

using ParameterDim = std::pair<ValueId, int>;

/// Follows one factor of one op forward: the parameters split on the way and whether the split may stand.
class FactorWalk {
 public:
  FactorWalk(const Graph& graph, const std::vector<ShardingRule>& rules)
      : graph_(graph), rules_(rules), users_(graph.values().size()) {
    for (const Op& op : graph.ops()) {
      if (op.phase != Phase::kForward) continue;
      for (ValueId input : op.inputs) users_[input.index()].push_back(op.id);
    }
  }

  /// Every parameter dim that has to be split with dim `dim` of `parameter`; empty when the split cannot stand.
  std::set<ParameterDim> follow(ValueId parameter, int dim) {
    met_.clear();
    visited_.clear();
    ended_in_sum_ = false;
    met_.insert({parameter, dim});
    for (OpId user : users_[parameter.index()])
      if (!enter(graph_.op(user), parameter, dim, true)) return {};
    return ended_in_sum_ ? met_ : std::set<ParameterDim>{};
  }

 private:
  bool enter(const Op& op, ValueId value, int dim, bool from_parameter) {
    const ShardingRule& rule = rules_[op.id.index()];
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] != value) continue;
      const auto& factors = rule.inputs[i][static_cast<size_t>(dim)];
      if (factors.empty()) return false;
      if (!enter_factor(op, rule, factors[0], from_parameter)) return false;
    }
    return true;
  }

  bool enter_factor(const Op& op, const ShardingRule& rule, int factor, bool from_parameter) {
    if (!visited_.insert({op.id, factor}).second) return true;
    switch (rule.factors[static_cast<size_t>(factor)].kind) {
      case FactorKind::kWhole:
        return false;
      case FactorKind::kSum:
      case FactorKind::kMax:
        // A weight's own summed dim may be split alone only if no activation has it too (else the activation is not
        // split yet).
        if (from_parameter && activation_has(op, rule, factor)) return false;
        ended_in_sum_ = true;
        collect_parameters(op, rule, factor);
        return true;
      case FactorKind::kParallel:
        break;
    }
    collect_parameters(op, rule, factor);
    for (size_t o = 0; o < op.outputs.size(); ++o) {
      int out_dim = dim_of(rule.outputs[o], factor);
      if (out_dim < 0) continue;
      for (OpId user : users_[op.outputs[o].index()])
        if (!enter(graph_.op(user), op.outputs[o], out_dim, false)) return false;
    }
    return true;
  }

  bool activation_has(const Op& op, const ShardingRule& rule, int factor) const {
    for (size_t i = 0; i < op.inputs.size(); ++i)
      if (graph_.value(op.inputs[i]).role != Role::kParameter && dim_of(rule.inputs[i], factor) >= 0) return true;
    return false;
  }

  void collect_parameters(const Op& op, const ShardingRule& rule, int factor) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      int dim = dim_of(rule.inputs[i], factor);
      if (dim >= 0 && graph_.value(op.inputs[i]).role == Role::kParameter) met_.insert({op.inputs[i], dim});
    }
  }

  static int dim_of(const std::vector<std::vector<int>>& operand, int factor) {
    for (size_t d = 0; d < operand.size(); ++d)
      for (int f : operand[d])
        if (f == factor) return static_cast<int>(d);
    return -1;
  }

  const Graph& graph_;
  const std::vector<ShardingRule>& rules_;
  std::vector<std::vector<OpId>> users_;
  std::set<ParameterDim> met_;
  std::set<std::pair<OpId, int>> visited_;
  bool ended_in_sum_ = false;
};

constexpr int64_t kUnevenBlock = 16;  // blocks at least this long may differ by padding

bool divides_well(int64_t extent, int degree) {
  return extent % degree == 0 || extent / degree >= kUnevenBlock;
}

Status refuse(const Value& value, int dim, int degree) {
  int64_t extent = value.shape[static_cast<size_t>(dim)];
  std::vector<std::string> valid;
  for (int64_t d = 1; d <= extent; ++d)
    if (extent % d == 0) valid.push_back(std::to_string(d));
  return invalid_argument(
      "parallel.tensor_parallel_size: {} does not divide {} (dim {} of {}); valid: {}; pipeline_parallel_size divides "
      "the model otherwise",
      degree, extent, dim, value.name, join(valid, ", "));
}

}  // namespace

Result<std::map<ValueId, ShardingSpec>> tensor_parallel_specs(const Graph& graph,
                                                              const std::vector<ShardingRule>& rules, int degree) {
  std::map<ValueId, ShardingSpec> specs;
  if (degree == 1) return specs;
  FactorWalk walk(graph, rules);
  for (const Parameter& parameter : graph.parameters()) {
    const Value& value = graph.value(parameter.value);
    for (int dim = 0; dim < static_cast<int>(value.shape.size()) && !specs.count(value.id); ++dim) {
      auto together = walk.follow(value.id, dim);
      bool is_free = !together.empty();
      for (const auto& [id, d] : together) is_free = is_free && !specs.count(id);
      if (!is_free) continue;
      for (const auto& [id, d] : together) {
        if (!divides_well(graph.value(id).shape[static_cast<size_t>(d)], degree))
          return refuse(graph.value(id), d, degree);
        ShardingSpec spec = ShardingSpec::replicated(graph.value(id).shape.size());
        spec.dims[static_cast<size_t>(d)] = {Axis::kTensor};
        specs.emplace(id, std::move(spec));
      }
    }
  }
  return specs;
}

}  // namespace altiplano
