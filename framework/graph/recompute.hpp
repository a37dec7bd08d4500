#pragma once
// recompute (Chen et al., "Training deep nets with sublinear memory cost", 2016): of the named layers, what only the
// backward ops still need is not kept from forward to backward. It is computed again there, just before the layer's
// first backward op, from what the layer got from others, which is kept.
//
// The ops that do so are copies of the forward ops, of phase backward and named like them with ".again": they draw the
// same random numbers (their `stream` is the original's) and run on the same inputs, so a step's results stay the same.
#include <set>
#include <string>
#include <vector>

#include "framework/graph/training_graph.hpp"

namespace altiplano {

/// "full": all layers but the last, whose backward ops come right after its forward ones; else the layers that the
/// globs name. Refuses a glob that names none.
Result<std::set<std::string>> layers_to_recompute(const Graph& graph, const std::vector<std::string>& wanted);

/// Before the optimizer's ops are there; names of no layer are passed over. Fills training.recomputed with those of the
/// layers that had anything to recompute.
Status recompute(TrainingGraph& training, const std::set<std::string>& layers);

}  // namespace altiplano
