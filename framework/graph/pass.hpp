#pragma once
// The one door of graph passes: run_pass checks for a stop, times the pass, verifies the graph after it, and dumps it on request
// (environment ALTIPLANO_DUMP_GRAPH=<folder>: one text file per pass).
#include <functional>
#include <string>

#include "framework/graph/graph.hpp"

namespace altiplano {

/// Runs `pass` on `graph`; a failed pass or a graph that does not verify is a Status naming the pass.
Status run_pass(const std::string& name, Graph& graph, const std::function<Status(Graph&)>& pass);

}  // namespace altiplano
