#pragma once
// Degrees that a job file fixes, and what planners that think in degrees make of the others.
#include <vector>

#include "framework/api/planner.hpp"
#include "framework/simulate/fit.hpp"

namespace altiplano {

/// What the job file fixes; 0: free.
struct FixedDegrees {
  int data = 0, tensor = 0, pipeline = 0;
};

/// From the `parallel:` section; a pipeline.split alone fixes the number of stages.
FixedDegrees fixed_degrees(const Options& parallel);

/// kInvalidArgument for fixed degrees that no division of the ranks has; names the first one given, which is one that
/// the user can change.
Status no_such_degrees(const Options& parallel, const FixedDegrees& fixed, int num_ranks);

/// All degrees with product `ranks` in the order the rules of the field prefer them: least tensor x pipeline first,
/// then tensor before pipeline; a tensor degree beyond one node comes last.
std::vector<Degrees> degrees_in_order(int ranks, int devices_per_node, const FixedDegrees& fixed);

/// Replicas alone, as DeepSpeed and FSDP have it: tensor and pipeline degrees only where the job file fixes them.
Result<Degrees> replicas_only(const PlanRequest& request);

/// The plan of the first options that fit, without its sharding; options whose states alone are too much are passed
/// over. kInfeasible (does_not_fit) for those that come nearest when none fits.
Result<Plan> first_that_fits(const PlanRequest& request, const std::vector<DegreePlanOptions>& in_order);

}  // namespace altiplano
