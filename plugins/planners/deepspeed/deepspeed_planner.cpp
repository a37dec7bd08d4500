#include "framework/api/planner.hpp"
#include "framework/api/register.hpp"
#include "framework/simulate/degree_choice.hpp"

namespace altiplano {
namespace {

class DeepSpeedPlanner : public Planner, public StagePlanner, public ShardingPlanner {
 public:
  const StagePlanner* stages() const noexcept override { return this; }
  const ShardingPlanner* sharding() const noexcept override { return this; }

  Result<Plan> plan_stages(const PlanRequest& request) const noexcept override {
    DegreePlanOptions options = degree_options(request, "planner/deepspeed");
    ALTIPLANO_ASSIGN(options.degrees, replicas_only(request));
    std::vector<DegreePlanOptions> in_order = {options};
    const bool is_fixed = request.options.has("zero_stage");
    while (!is_fixed && options.zero < Plan::kMostZero) {
      ++options.zero;
      in_order.push_back(options);
    }
    return first_that_fits(request, in_order);
  }

  Status plan_sharding(const PlanRequest& request, Plan& plan) const noexcept override {
    return add_degree_sharding(request, plan);
  }
};

}  // namespace
}  // namespace altiplano

ALTIPLANO_REGISTER_PLUGIN(altiplano::Planner, altiplano::DeepSpeedPlanner, "planner/deepspeed",
                          ALTIPLANO_PLUGIN_VERSION, 0,
                          "DeepSpeed's rule: replicas alone, the ZeRO stage raised until the memory suffices")
