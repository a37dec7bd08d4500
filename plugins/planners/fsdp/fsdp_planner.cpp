#include "framework/api/planner.hpp"
#include "framework/api/register.hpp"
#include "framework/simulate/degree_choice.hpp"

namespace altiplano {
namespace {

class FsdpPlanner : public Planner, public StagePlanner, public ShardingPlanner {
 public:
  const StagePlanner* stages() const noexcept override { return this; }
  const ShardingPlanner* sharding() const noexcept override { return this; }

  Result<Plan> plan_stages(const PlanRequest& request) const noexcept override {
    DegreePlanOptions options = degree_options(request, "planner/fsdp");
    if (request.options.has("zero_stage") && options.zero != Plan::kMostZero)
      return invalid_argument(
          "{}: {}: planner/fsdp splits parameters too, which is stage 3; leave it out or use planner/deepspeed",
          request.options.where("zero_stage"), options.zero);
    options.zero = Plan::kMostZero;
    ALTIPLANO_ASSIGN(options.degrees, replicas_only(request));
    return first_that_fits(request, {options});
  }

  Status plan_sharding(const PlanRequest& request, Plan& plan) const noexcept override {
    return add_degree_sharding(request, plan);
  }
};

}  // namespace
}  // namespace altiplano

ALTIPLANO_REGISTER_PLUGIN(altiplano::Planner, altiplano::FsdpPlanner, "planner/fsdp", ALTIPLANO_PLUGIN_VERSION, 0,
                          "FSDP's rule: replicas alone, parameters, gradients and states split over all of them")
