#include "framework/api/planner.hpp"
#include "framework/api/register.hpp"
#include "framework/simulate/degree_choice.hpp"

namespace altiplano {
namespace {

class HeuristicPlanner : public Planner, public StagePlanner, public ShardingPlanner {
 public:
  const StagePlanner* stages() const noexcept override { return this; }
  const ShardingPlanner* sharding() const noexcept override { return this; }

  Result<Plan> plan_stages(const PlanRequest& request) const noexcept override {
    const FixedDegrees fixed = fixed_degrees(request.options);
    std::vector<DegreePlanOptions> in_order;
    for (const Degrees& degrees : degrees_in_order(request.num_ranks, request.cluster->devices_per_node(), fixed)) {
      in_order.push_back(degree_options(request, "planner/heuristic"));
      in_order.back().degrees = degrees;
    }
    if (in_order.empty()) return no_such_degrees(request.options, fixed, request.num_ranks);
    return first_that_fits(request, in_order);
  }

  Status plan_sharding(const PlanRequest& request, Plan& plan) const noexcept override {
    return add_degree_sharding(request, plan);
  }
};

}  // namespace
}  // namespace altiplano

ALTIPLANO_REGISTER_PLUGIN(altiplano::Planner, altiplano::HeuristicPlanner, "planner/heuristic",
                          ALTIPLANO_PLUGIN_VERSION, 0,
                          "Megatron's rules: tensor as far as memory needs, pipeline across, data the rest")
