#pragma once
// The one door of graph passes: run_pass checks for a stop, times the pass, verifies the graph after it, and dumps it on request
// (environment ALTIPLANO_DUMP_GRAPH=<folder>: one text file per pass).
#include <functional>
#include <string>
#include <vector>

#include "framework/graph/graph.hpp"

namespace altiplano {

/// `stop` is asked before every pass; true ends the story with kStoppedEarly. Empty: never. Set once at start, before any thread.
void set_pass_stop_check(std::function<bool()> stop);

struct PassRecord {
  std::string name;
  double seconds = 0;
};
/// The passes this thread has run since the last call, in order.
std::vector<PassRecord> take_pass_records();

/// Runs `pass` on `graph`; a failed pass or a graph that does not verify is a Status naming the pass.
Status run_pass(const std::string& name, Graph& graph, const std::function<Status(Graph&)>& pass);

}  // namespace altiplano
