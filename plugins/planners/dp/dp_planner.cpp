#include <algorithm>
#include <optional>

#include "framework/api/planner.hpp"
#include "framework/api/register.hpp"
#include "framework/base/plural.hpp"
#include "framework/simulate/degree_choice.hpp"
#include "framework/simulate/fit.hpp"
#include "framework/simulate/search_sharding.hpp"
#include "plugins/planners/dp/dp_candidates.hpp"

namespace altiplano {
namespace {

/// Candidates that are planned completely, and plans that fit after which no more are tried.
constexpr size_t kMostTried = 24, kEnoughFit = 6;
/// What the dynamic program says is no more than this times what the estimate of the whole plan says; once some plans
/// were estimated, no more than what was seen of them times the second.
constexpr double kTrust = 1.05, kTrustSeen = 1.02;

/// How much too much the dynamic program said at most.
class Trust {
 public:
  void see(double said, double estimated) {
    most_ = num_seen_++ == 0 ? said / estimated : std::max(most_, said / estimated);
  }
  /// Whether a plan that is said to take so long may take no more than `seconds`.
  bool may_be_within(double said, double seconds) const {
    const double factor = num_seen_ < kEnoughSeen ? kTrust : std::min(kTrust, kTrustSeen * most_);
    return said <= factor * seconds;
  }

 private:
  static constexpr int kEnoughSeen = 3;
  int num_seen_ = 0;
  double most_ = 1;
};

class DpPlanner : public Planner, public StagePlanner, public ShardingPlanner {
 public:
  const StagePlanner* stages() const noexcept override { return this; }
  const ShardingPlanner* sharding() const noexcept override { return this; }

  Result<Plan> plan_stages(const PlanRequest& asked) const noexcept override {
    PlanRequest request = asked;
    ALTIPLANO_ASSIGN(request.facts, facts_of(*asked.graph, asked.facts));
    ALTIPLANO_ASSIGN(const auto candidates, dp_candidates(request, *request.facts));
    std::optional<Plan> best;
    size_t num_tried = 0, num_fit = 0;
    MemorySeen seen;
    Trust trust;
    Status refusal;
    for (const DpCandidate& candidate : candidates) {
      if (num_tried++ == kMostTried || num_fit == kEnoughFit) break;
      if (best && !trust.may_be_within(candidate.seconds, best->predicted.step.value)) break;
      Plan plan = dp_plan(request, candidate, "planner/dp");
      if (Status status = search_sharding(request, plan, true, &seen); !status.is_ok()) {
        if (refusal.is_ok()) refusal = status;
        continue;
      }
      ++num_fit;
      trust.see(candidate.seconds, plan.predicted.step.value);
      if (!best || plan.predicted.step < best->predicted.step) best = std::move(plan);
    }
    if (!best && request.wants_advice) return plan_by_rules(request);
    if (!best) return refusal.is_ok() ? nothing_fits(request) : refusal;
    return std::move(*best);
  }

  /// The shardings that came with the stages were found by previews; they stay where every rank fits with them.
  Status plan_sharding(const PlanRequest& request, Plan& plan) const noexcept override {
    if (plan.predicted.step == Seconds()) return search_sharding(request, plan);
    ALTIPLANO_ASSIGN(const PlanEstimate estimate, request.services->estimate(plan));
    if (std::ranges::all_of(estimate.peak_per_rank, [&](Bytes peak) { return peak <= request.memory_per_rank; })) {
      plan.predicted = estimate.prediction;
      return Status::ok();
    }
    forget_shardings(plan);
    return search_sharding(request, plan);
  }

 private:
  /// What searches count of memory is no more than near the truth, so the last word have the rules' plans, each
  /// estimated exactly: one that fits, or what is lacking and the smallest change that would help.
  static Result<Plan> plan_by_rules(const PlanRequest& request) {
    std::vector<DegreePlanOptions> in_order;
    for (const Degrees& degrees :
         degrees_in_order(request.num_ranks, request.cluster->devices_per_node(), fixed_degrees(request.options))) {
      in_order.push_back(degree_options(request, "planner/dp"));
      in_order.back().degrees = degrees;
    }
    ALTIPLANO_ASSIGN(Plan plan, first_that_fits(request, in_order));
    ALTIPLANO_RETURN_IF_ERROR(add_degree_sharding(request, plan));
    return plan;
  }

  static Status nothing_fits(const PlanRequest& request) {
    return infeasible(
        "no feasible plan: no division of {} over {} keeps within {} per rank. Take more ranks, more "
        "memory, or a smaller global batch",
        counted(static_cast<int64_t>(request.graph->graph.layers().size()), "layer"),
        counted(request.num_ranks, "rank"), to_string(request.memory_per_rank));
  }
};

}  // namespace
}  // namespace altiplano

ALTIPLANO_REGISTER_PLUGIN(
    altiplano::Planner, altiplano::DpPlanner, "planner/dp", ALTIPLANO_PLUGIN_VERSION, 0,
    "degrees, stages, microbatches and shardings by one predicted time: dynamic program over layers and devices")
