#include "framework/sharding/graph_facts.hpp"

#include "framework/sharding/dims.hpp"

namespace altiplano {

Result<GraphFacts> GraphFacts::of(const TrainingGraph& training) {
  GraphFacts facts;
  ALTIPLANO_ASSIGN(facts.rules, rules_of(training.graph));
  facts.batch_dim = trace_dim(training.graph, facts.rules, training.inputs, 0);
  facts.sequence_dim = trace_dim(training.graph, facts.rules, training.inputs, 1);
  facts.layer_signatures = altiplano::layer_signatures(training.graph);
  return facts;
}

Result<SharedFacts> facts_of(const TrainingGraph& training, SharedFacts known) {
  if (known != nullptr) return known;
  ALTIPLANO_ASSIGN(GraphFacts found, GraphFacts::of(training));
  return std::make_shared<const GraphFacts>(std::move(found));
}

}  // namespace altiplano
