#include "plugins/planners/heuristic/heuristic_degrees.hpp"

#include <algorithm>
#include <tuple>

namespace altiplano {

std::vector<Degrees> degrees_in_order(int ranks, int devices_per_node, const FixedDegrees& fixed) {
  std::vector<Degrees> all;
  for (int tensor = 1; tensor <= ranks; ++tensor) {
    if (ranks % tensor != 0 || (fixed.tensor && tensor != fixed.tensor)) continue;
    for (int pipeline = 1; pipeline <= ranks / tensor; ++pipeline) {
      if ((ranks / tensor) % pipeline != 0 || (fixed.pipeline && pipeline != fixed.pipeline)) continue;
      int data = ranks / tensor / pipeline;
      if (!fixed.data || data == fixed.data) all.push_back({data, tensor, pipeline});
    }
  }
  auto rank_of = [&](const Degrees& d) {
    bool crosses_nodes = d.tensor > devices_per_node || devices_per_node % d.tensor != 0;
    return std::tuple(crosses_nodes, d.tensor * d.pipeline, d.pipeline);
  };
  std::stable_sort(all.begin(), all.end(), [&](const Degrees& a, const Degrees& b) { return rank_of(a) < rank_of(b); });
  return all;
}

}  // namespace altiplano
