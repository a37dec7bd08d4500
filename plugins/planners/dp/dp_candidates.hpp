#pragma once
#include <vector>

#include "framework/api/planner.hpp"
#include "framework/search/sharding_problem.hpp"

namespace altiplano {

/// A way to divide the work: stages with their tensor degrees, replicas and microbatches, and what the dynamic program
/// says of it.
struct DpStage {
  int first = 0, end = 0;  ///< layers
  int tensor = 1;
  auto operator<=>(const DpStage&) const = default;
};
struct DpCandidate {
  int data = 1;
  int64_t microbatch = 1;
  std::vector<DpStage> stages;
  double seconds = 0;
};

/// The best division for every data degree, set of tensor degrees and microbatch size that the request allows, fastest
/// first; those that need more memory than there is by the layers' sums are left out. Refuses degrees that do not
/// divide the ranks.
Result<std::vector<DpCandidate>> dp_candidates(const PlanRequest& request, const GraphFacts& facts);

/// The plan of a candidate, without shardings. Slots as everywhere: tensor fastest, then data, stages one after the
/// other.
Plan dp_plan(const PlanRequest& request, const DpCandidate& candidate, const std::string& planner);

}  // namespace altiplano
