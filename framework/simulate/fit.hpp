#pragma once
// Fitting plans into memory: what planners that think in degrees share. Every answer is checked by estimating the plan
// it would give.
#include "framework/api/planner.hpp"
#include "framework/plan/degrees.hpp"

namespace altiplano {

/// In a refusal, before what would fit.
inline constexpr std::string_view kSmallestChange = "Smallest change that fits:";

/// The plan for these degrees with the tensor-parallel rule and the user's `parallel.sharding` applied, its estimate
/// filled into `predicted`. A microbatch of 0 is chosen: the largest that fits (the smallest when none does), at least
/// four microbatches per stage where the batch allows.
struct FittedPlan {
  Plan plan;
  PlanEstimate estimate;
  bool fits = false;
};
/// When no microbatch can fit, only the smallest is tried, for its figures.
Result<FittedPlan> fit_plan(const PlanRequest& request, DegreePlanOptions options);

/// kInfeasible for a plan that does not fit: where the bytes of the fullest rank go, the limit, and the smallest change
/// of the job file that would fit (only changes that exist, each verified by an estimate).
Status does_not_fit(const PlanRequest& request, const DegreePlanOptions& options, const FittedPlan& plan);

/// Whether the parameters, gradients and optimizer states alone are more than a rank has: known without lowering, so
/// that searches pass over what is hopeless. The microbatch does not matter.
bool cannot_fit(const PlanRequest& request, const DegreePlanOptions& options);

/// Adds the user's `parallel.sharding` to plan.sharding; refuses specs that are none and patterns without a parameter.
Status add_given_sharding(const PlanRequest& request, Plan& plan);

/// Fills plan.sharding: the user's `parallel.sharding` first, then the tensor-parallel rule for the plan's tensor
/// degree.
Status add_degree_sharding(const PlanRequest& request, Plan& plan);

/// Options of `parallel:` that are no degrees: zero, sequence parallel, split, schedule.
DegreePlanOptions degree_options(const PlanRequest& request, const std::string& planner);

}  // namespace altiplano
