#include "framework/api/planner.hpp"
#include "framework/api/register.hpp"
#include "framework/simulate/search_sharding.hpp"

namespace altiplano {
namespace {

class IlpPlanner : public Planner, public ShardingPlanner {
 public:
  const ShardingPlanner* sharding() const noexcept override { return this; }

  Status plan_sharding(const PlanRequest& request, Plan& plan) const noexcept override {
    return search_sharding(request, plan);
  }
};

}  // namespace
}  // namespace altiplano

ALTIPLANO_REGISTER_PLUGIN(altiplano::Planner, altiplano::IlpPlanner, "planner/ilp", ALTIPLANO_PLUGIN_VERSION, 0,
                          "shardings of all ops and tensors as one problem of choices, solved under each rank's memory")
