#pragma once
// Searching the shardings of a plan: what planners that search share, over framework/search and the host's exact
// estimate.
#include "framework/api/planner.hpp"

namespace altiplano {

/// Fills plan.sharding, strategies and stored for the stages chosen, and plan.predicted: the shardings of least
/// predicted time that keep within request.memory_per_rank, as ShardingProblem states them and the estimate counts
/// them. What the plan and the job file
/// (`parallel.sharding`) say of parameters is kept. kInfeasible: by how much the memory falls short.
/// `previews`: memory and time of the first rank of each stage decide, for plans that are only compared.
Status search_sharding(const PlanRequest& request, Plan& plan, bool previews = false);

}  // namespace altiplano
