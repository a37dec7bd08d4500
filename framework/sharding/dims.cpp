#include "framework/sharding/dims.hpp"

#include <numeric>

namespace altiplano {

Result<std::vector<ShardingRule>> rules_of(const Graph& graph) {
  std::vector<ShardingRule> rules;
  for (const Op& op : graph.ops()) {
    ALTIPLANO_ASSIGN(auto rule, rule_of(graph, op));
    rules.push_back(std::move(rule));
  }
  return rules;
}

namespace {

/// Union-find over all (value, dim) pairs.
class DimClasses {
 public:
  explicit DimClasses(const Graph& graph) {
    for (const Value& value : graph.values()) {
      first_.push_back(static_cast<int>(parent_.size()));
      parent_.resize(parent_.size() + value.shape.size());
    }
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int node(ValueId value, size_t dim) const { return first_[value.index()] + static_cast<int>(dim); }
  int find(int node) {
    while (parent_[static_cast<size_t>(node)] != node) {
      int grand = parent_[static_cast<size_t>(parent_[static_cast<size_t>(node)])];
      parent_[static_cast<size_t>(node)] = grand;
      node = grand;
    }
    return node;
  }
  void unite(int a, int b) { parent_[static_cast<size_t>(find(a))] = find(b); }

 private:
  std::vector<int> first_, parent_;
};

/// Calls visit(value, dim, major factor of the dim) for every dim of every operand.
template <typename Visit>
void for_each_dim(const Op& op, const ShardingRule& rule, Visit visit) {
  for (size_t i = 0; i < op.inputs.size(); ++i)
    for (size_t d = 0; d < rule.inputs[i].size(); ++d)
      if (!rule.inputs[i][d].empty()) visit(op.inputs[i], d, rule.inputs[i][d][0]);
  for (size_t i = 0; i < op.outputs.size(); ++i)
    for (size_t d = 0; d < rule.outputs[i].size(); ++d)
      if (!rule.outputs[i][d].empty()) visit(op.outputs[i], d, rule.outputs[i][d][0]);
}

}  // namespace

std::vector<int> trace_dim(const Graph& graph, const std::vector<ShardingRule>& rules,
                           const std::vector<ValueId>& sources, int dim) {
  DimClasses classes(graph);
  for (const Op& op : graph.ops()) {
    const ShardingRule& rule = rules[op.id.index()];
    std::vector<int> of_factor(rule.factors.size(), -1);
    for_each_dim(op, rule, [&](ValueId value, size_t d, int factor) {
      int node = classes.node(value, d);
      int& first = of_factor[static_cast<size_t>(factor)];
      if (first < 0) first = node;
      classes.unite(node, first);
    });
  }
  std::vector<int> result(graph.values().size(), -1);
  for (ValueId source : sources) {
    int wanted = classes.find(classes.node(source, static_cast<size_t>(dim)));
    for (const Value& value : graph.values())
      for (size_t d = 0; d < value.shape.size(); ++d)
        if (result[value.id.index()] < 0 && classes.find(classes.node(value.id, d)) == wanted)
          result[value.id.index()] = static_cast<int>(d);
  }
  return result;
}

int factor_of_dim(const Op& op, const ShardingRule& rule, const std::vector<int>& dims) {
  int found = -1;
  for_each_dim(op, rule, [&](ValueId value, size_t d, int factor) {
    if (found < 0 && dims[value.index()] == static_cast<int>(d)) found = factor;
  });
  return found;
}

}  // namespace altiplano
