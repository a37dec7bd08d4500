#pragma once
#include <vector>

#include "framework/plan/degrees.hpp"

namespace altiplano {

/// What the job file fixes; 0: free.
struct FixedDegrees {
  int data = 0, tensor = 0, pipeline = 0;
};

/// All degrees with product `ranks` in the order the rules of the field prefer them: least tensor x pipeline first,
/// then tensor before pipeline; a tensor degree beyond one node comes last.
std::vector<Degrees> degrees_in_order(int ranks, int devices_per_node, const FixedDegrees& fixed);

}  // namespace altiplano
