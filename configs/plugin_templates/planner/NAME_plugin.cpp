// The adapter: a planner has two halves. This one plans stages by its own rule and leaves sharding to the framework's
// rule of degrees; it could also offer one half only.
#include <algorithm>
#include <exception>

#include "@name@_degrees.hpp"
#include "framework/api/planner.hpp"
#include "framework/api/register.hpp"
#include "framework/simulate/fit.hpp"

namespace {

using namespace altiplano;

class @Name@Plugin final : public Planner, public StagePlanner, public ShardingPlanner {
 public:
  const StagePlanner* stages() const noexcept override { return this; }
  const ShardingPlanner* sharding() const noexcept override { return this; }

  Result<Plan> plan_stages(const PlanRequest& request) const noexcept override {
    try {
      const Options& options = request.options;
      const auto layers = static_cast<int64_t>(request.graph->graph.layers().size());
      int64_t most = std::min<int64_t>(2, layers);
      if (options.has("pipeline_parallel_size")) most = std::min(layers, options.get_int("pipeline_parallel_size"));
      DegreePlanOptions degree = degree_options(request, ALTIPLANO_PLUGIN_NAME);
      degree.degrees = @name@_plugin::choose_degrees(request.num_ranks, static_cast<int>(most));
      ALTIPLANO_ASSIGN(FittedPlan fitted, fit_plan(request, degree));
      if (!fitted.fits) return does_not_fit(request, degree, fitted);
      fitted.plan.sharding.clear();
      return std::move(fitted.plan);
    } catch (const std::exception& e) {
      return runtime_failure("planner/@name@: {}", e.what());
    }
  }

  Status plan_sharding(const PlanRequest& request, Plan& plan) const noexcept override {
    try {
      return add_degree_sharding(request, plan);
    } catch (const std::exception& e) {
      return runtime_failure("planner/@name@: {}", e.what());
    }
  }
};

}  // namespace

ALTIPLANO_REGISTER_PLUGIN(altiplano::Planner, @Name@Plugin, ALTIPLANO_PLUGIN_NAME, ALTIPLANO_PLUGIN_VERSION, 0,
                          "two pipeline stages where the ranks allow, replicas otherwise")
