#pragma once
// How a job comes to its plan: the planners that its file names are asked, and where nothing they find fits the memory,
// what the file leaves open that saves some.
#include <string>
#include <vector>

#include "framework/config/job_values.hpp"
#include "framework/runtime/job.hpp"

namespace altiplano {

/// Programs of the plan that planners asked about last, which often is the one that they take: it is lowered once.
struct LastLowered {
  std::string plan;  ///< plan_itself
  bool only_first_of_stage = false;
  std::vector<Program> programs;
};

struct PlanningSizes {
  BatchSizes batch;
  int64_t sequence = 0;
  bool only_first_of_stage = false;  ///< previews speak for all ranks, see JobRequest
};

/// A plan without what it is predicted to take.
std::string plan_itself(Plan plan);

/// What one rank may use: the job file's figure, else the cluster's; for this machine what it really has.
Result<Bytes> memory_limit(const Options& options, const Cluster& cluster, int ranks_of_a_host);

/// Asks the planners for job.plan, of job.graph, with open ZeRO stages at their default and no open recomputation.
/// `zero`: the stage, where the job file leaves it open. `wants_advice`: a refusal names the smallest change that fits.
Status ask_planners(Job& job, const PlanningSizes& sizes, int zero, bool wants_advice, LastLowered& last);

/// The sharding half alone, for the stages that job.plan has.
Status ask_sharding_planner(Job& job, const PlanningSizes& sizes, LastLowered& last);

/// Exact memory and predicted step of a plan of job.graph.
Result<PlanEstimate> estimate_for(Job& job, const Plan& plan, const PlanningSizes& sizes, LastLowered& last);

}  // namespace altiplano
