#pragma once
// GraphFacts: what follows from a graph alone and every plan of it needs.
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/graph/training_graph.hpp"
#include "framework/sharding/rule.hpp"

namespace altiplano {

/// Found once by those who ask many questions about one graph; never changed afterwards.
struct GraphFacts {
  std::vector<ShardingRule> rules;         ///< by OpId
  std::vector<int> batch_dim;              ///< by ValueId; -1: none
  std::vector<int> sequence_dim;           ///< by ValueId; -1: none
  std::vector<uint64_t> layer_signatures;  ///< by LayerId; equal: the layers are alike
  static Result<GraphFacts> of(const TrainingGraph& training);
};

using SharedFacts = std::shared_ptr<const GraphFacts>;
/// `known`, or where that is null, found anew.
Result<SharedFacts> facts_of(const TrainingGraph& training, SharedFacts known = nullptr);

}  // namespace altiplano
