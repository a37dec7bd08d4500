#pragma once
// ShardingRule: the parsed factor string of an op. Grammar:
//   rule    := operand+ "->" operand+ clause*
//   operand := "[" dim ("," dim)* "]" | "[]"            dim := factor | "(" factor factor+ ")"   (major factor first)
//   clause  := ("sum:" | "max:" | "whole:") factor ("," factor)*  |  "linear"
// Every factor not named in a clause is parallel: it may be split and its split carries to every operand that has it. A
// sum (max) factor is absent from an output that thereby becomes a partial sum (max). A whole factor must not be split.
// `linear`: the op may run on partial sums: when every input is partial over an axis, so is every output.
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/graph/op_definition.hpp"
#include "framework/sharding/spec.hpp"

namespace altiplano {

enum class FactorKind : uint8_t { kParallel, kSum, kMax, kWhole };

struct Factor {
  std::string name;
  FactorKind kind = FactorKind::kParallel;
  int64_t size = 0;
};

struct ShardingRule {
  std::vector<Factor> factors;
  /// inputs[i][dim] = indices of the dim's factors, major first.
  std::vector<std::vector<std::vector<int>>> inputs, outputs;
  bool linear = false;

  static Result<ShardingRule> parse(const std::string& text, std::span<const ValueType> inputs,
                                    std::span<const ValueType> outputs);
  std::string to_string() const;
};

/// The rule of an op of a graph.
Result<ShardingRule> rule_of(const Graph& graph, const Op& op);

/// One way to run an op on a mesh: which factor each active axis splits (an absent axis: the op is computed redundantly
/// along it, or its inputs are partial along it when `linear_partial`). Derived: the specs in which inputs are used and
/// outputs come out.
struct Strategy {
  std::map<Axis, int> factor_of;  ///< axis -> factor index; several axes on one factor: major axis first by Axis order
  AxisSet linear_partial;         ///< axes along which a linear op works on partial sums
  std::vector<ShardingSpec> inputs, outputs;
  std::string to_string(const ShardingRule& rule) const;  ///< "data:b tensor:h"
};

/// Derives the specs. Nothing for what the rule forbids: a whole factor split, a composite dim not split evenly at its
/// major factor, a parallel factor that an output lacks.
std::optional<Strategy> make_strategy(const ShardingRule& rule, const std::map<Axis, int>& factor_of,
                                      AxisSet linear_partial, const MeshShape& mesh);
/// The strategy that Strategy::to_string prints as `text` (words "axis:factor" or "axis:partial", or "-"). Axes of
/// degree 1 are passed over. Refuses unknown axes and factors, an axis twice, and what the rule forbids, naming the
/// rule.
Result<Strategy> parse_strategy(const std::string& text, const ShardingRule& rule, const MeshShape& mesh);
/// Every legal strategy on the mesh (each active axis on any factor or none), in a fixed order.
std::vector<Strategy> enumerate_strategies(const ShardingRule& rule, const MeshShape& mesh);

}  // namespace altiplano
