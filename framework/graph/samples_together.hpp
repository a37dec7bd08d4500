#pragma once
// How many samples of the global batch an op of the graph takes together (OpDefinition::takes_samples_together). It is
// the graph's, so that a model's statistics do not depend on how it is divided; what a plan computes at once must be
// just that many: its microbatch times its replicas.
#include "framework/graph/op_definition.hpp"

namespace altiplano {

/// 0: no op takes samples together. Refuses ops that take different numbers, which no plan could give both.
Result<int64_t> samples_together(const Graph& graph);

}  // namespace altiplano
