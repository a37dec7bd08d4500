#include <optional>

#include "framework/api/planner.hpp"
#include "framework/api/register.hpp"
#include "framework/simulate/fit.hpp"
#include "plugins/planners/heuristic/heuristic_degrees.hpp"

namespace altiplano {
namespace {

class HeuristicPlanner : public Planner, public StagePlanner, public ShardingPlanner {
 public:
  const StagePlanner* stages() const noexcept override { return this; }
  const ShardingPlanner* sharding() const noexcept override { return this; }

  Result<Plan> plan_stages(const PlanRequest& request) const noexcept override {
    const Options& o = request.options;
    auto given = [&](const char* key) { return o.has(key) ? static_cast<int>(o.get_int(key)) : 0; };
    FixedDegrees fixed{given("data_parallel_size"), given("tensor_parallel_size"), given("pipeline_parallel_size")};
    auto candidates = degrees_in_order(request.num_ranks, request.cluster->devices_per_node(), fixed);
    if (candidates.empty())
      return invalid_argument("{}: no degrees with data {} x tensor {} x pipeline {} (0: free) have {} ranks",
                              o.where("data_parallel_size"), fixed.data, fixed.tensor, fixed.pipeline,
                              request.num_ranks);
    std::optional<FittedPlan> smallest;  // the plan that comes nearest to fitting
    std::optional<DegreePlanOptions> smallest_options;
    Status refusal;
    for (const Degrees& degrees : candidates) {
      DegreePlanOptions options = degree_options(request, "planner/heuristic");
      options.degrees = degrees;
      auto fitted = fit_plan(request, options);
      if (!fitted.is_ok()) {
        if (refusal.is_ok()) refusal = fitted.status();
        continue;
      }
      if (fitted->fits) {
        fitted->plan.sharding.clear();
        return std::move(fitted->plan);
      }
      if (!smallest || peak(*fitted) < peak(*smallest)) {
        smallest = std::move(*fitted);
        smallest_options = options;
      }
    }
    return smallest ? does_not_fit(request, *smallest_options, *smallest) : refusal;
  }

  Status plan_sharding(const PlanRequest& request, Plan& plan) const noexcept override {
    return add_degree_sharding(request, plan);
  }

 private:
  static Bytes peak(const FittedPlan& fitted) {
    Bytes most;
    for (Bytes bytes : fitted.estimate.peak_per_rank) most = std::max(most, bytes);
    return most;
  }
};

}  // namespace
}  // namespace altiplano

ALTIPLANO_REGISTER_PLUGIN(altiplano::Planner, altiplano::HeuristicPlanner, "planner/heuristic",
                          ALTIPLANO_PLUGIN_VERSION, 0,
                          "the rules of the field: tensor as far as memory needs, pipeline across, data the rest")
