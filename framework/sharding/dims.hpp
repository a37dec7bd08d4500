#pragma once
// Which dims of which values are "the batch" and "the sequence": found from the model's inputs through the factor
// rules, so that nothing has to know an op's layout by name.
#include <vector>

#include "framework/graph/training_graph.hpp"
#include "framework/sharding/rule.hpp"

namespace altiplano {

/// Rules of all ops, parsed once, indexed by OpId.
Result<std::vector<ShardingRule>> rules_of(const Graph& graph);

/// dims[value] = index of the dim that is tied by the rules to dim `dim` of one of `sources`; -1: none. A dim that
/// merges it with others as the minor part does not count.
std::vector<int> trace_dim(const Graph& graph, const std::vector<ShardingRule>& rules,
                           const std::vector<ValueId>& sources, int dim);

/// The factor of an op's rule that a traced dim runs along; -1 when no operand has it.
int factor_of_dim(const Op& op, const ShardingRule& rule, const std::vector<int>& dims);

}  // namespace altiplano
