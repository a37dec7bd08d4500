#pragma once
// Searching the shardings of a plan: what planners that search share, over framework/search and the host's exact
// estimate.
#include "framework/api/planner.hpp"

namespace altiplano {

/// How far the rows of searches were from the programs so far, for those who search several plans of one job.
struct MemorySeen {
  int number = 0;             ///< of programs that were compared
  double most_too_much = -1;  ///< by which rows counted more than a program takes, as part of a rank's memory
};

/// Fills plan.sharding, strategies and stored for the stages chosen, and plan.predicted: the shardings of least
/// predicted time that keep within request.memory_per_rank, as ShardingProblem states them and the estimate counts
/// them. What the plan and the job file
/// (`parallel.sharding`) say of parameters is kept. kInfeasible: by how much the memory falls short.
/// `previews`: memory and time of the first rank of each stage decide, for plans that are only compared.
/// `seen`: what lacks more by the rows than they were wrong before is refused without another look; filled.
Status search_sharding(const PlanRequest& request, Plan& plan, bool previews = false, MemorySeen* seen = nullptr);

}  // namespace altiplano
