#include <algorithm>

#include "framework/api/planner.hpp"
#include "framework/api/register.hpp"
#include "framework/base/plural.hpp"
#include "framework/simulate/fit.hpp"

namespace altiplano {
namespace {

/// Degrees from the job file; absent ones are derived from the number of ranks.
Result<Degrees> degrees_from(const PlanRequest& request) {
  const Options& o = request.options;
  auto given = [&](const char* key) { return o.has(key) ? static_cast<int>(o.get_int(key)) : 0; };
  int data = given("data_parallel_size"), tensor = given("tensor_parallel_size"),
      pipeline = given("pipeline_parallel_size");
  if (tensor == 0) tensor = 1;
  if (pipeline == 0) pipeline = o.has("pipeline.split") ? static_cast<int>(o.get_ints("pipeline.split").size()) : 1;
  if (data == 0 && request.num_ranks % (tensor * pipeline) == 0) data = request.num_ranks / (tensor * pipeline);
  if (data == 0) {
    // The first of them that the job file gives: one of them is more than 1.
    const char* keys[] = {"tensor_parallel_size", "pipeline_parallel_size", "pipeline.split"};
    const char* key = *std::ranges::find_if(keys, [&](const char* k) { return o.has(k); });
    return invalid_argument(
        "{}: tensor_parallel_size {} x pipeline_parallel_size {} = {} does not divide {}; start it with -n {} or a "
        "multiple (`altiplano launch -n {}` trains), or use smaller degrees",
        o.where(key), tensor, pipeline, tensor * pipeline, counted(request.num_ranks, "rank"), tensor * pipeline,
        tensor * pipeline);
  }
  Degrees degrees{data, tensor, pipeline};
  if (degrees.num_ranks() != request.num_ranks)
    return invalid_argument(
        "{}: data {} x tensor {} x pipeline {} = {}, the job has {}; start it with -n {} (`altiplano launch -n {}` "
        "trains), or use other degrees",
        o.where("data_parallel_size"), data, tensor, pipeline, counted(degrees.num_ranks(), "rank"), request.num_ranks,
        degrees.num_ranks(), degrees.num_ranks());
  return degrees;
}

class ManualPlanner : public Planner, public StagePlanner, public ShardingPlanner {
 public:
  const StagePlanner* stages() const noexcept override { return this; }
  const ShardingPlanner* sharding() const noexcept override { return this; }

  Result<Plan> plan_stages(const PlanRequest& request) const noexcept override {
    DegreePlanOptions options = degree_options(request, "planner/manual");
    ALTIPLANO_ASSIGN(options.degrees, degrees_from(request));
    ALTIPLANO_ASSIGN(FittedPlan fitted, fit_plan(request, options));
    if (!fitted.fits) return does_not_fit(request, options, fitted);
    fitted.plan.sharding.clear();
    return std::move(fitted.plan);
  }

  Status plan_sharding(const PlanRequest& request, Plan& plan) const noexcept override {
    return add_degree_sharding(request, plan);
  }
};

}  // namespace
}  // namespace altiplano

ALTIPLANO_REGISTER_PLUGIN(altiplano::Planner, altiplano::ManualPlanner, "planner/manual", ALTIPLANO_PLUGIN_VERSION, 0,
                          "the degrees of the job file are the plan")
