#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "framework/api/planner.hpp"
#include "framework/api/register.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
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
    if (candidates.empty()) return no_such_degrees(o, fixed, request.num_ranks);
    std::optional<FittedPlan> smallest;  // the plan that comes nearest to fitting
    std::optional<DegreePlanOptions> smallest_options;
    Status refusal;
    for (const DegreePlanOptions& options : worth_trying(request, candidates)) {
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
  /// Names the first degree given, which is one the user can change.
  static Status no_such_degrees(const Options& options, const FixedDegrees& fixed, int num_ranks) {
    const std::pair<const char*, int> all[] = {{"data_parallel_size", fixed.data},
                                               {"tensor_parallel_size", fixed.tensor},
                                               {"pipeline_parallel_size", fixed.pipeline}};
    int64_t product = 1;
    std::vector<std::string> keys, words;
    for (const auto& [name, degree] : all) {
      if (degree == 0) continue;
      keys.emplace_back(name);
      words.push_back(fmt::format("{} {}", name, degree));
      product *= degree;
    }
    const std::string given =
        keys.size() == 1 ? fmt::format("{}", product) : fmt::format("{} = {}", join(words, " x "), product);
    return invalid_argument(
        "{}: {} does not divide {}; start it with -n {} or a multiple (`altiplano launch -n {}` trains), or let the "
        "planner choose",
        options.where(keys[0]), given, counted(num_ranks, "rank"), product, product);
  }

  /// Those whose parameters and states fit; when there are none the one that splits them most, for its figures.
  static std::vector<DegreePlanOptions> worth_trying(const PlanRequest& request,
                                                     const std::vector<Degrees>& candidates) {
    std::vector<DegreePlanOptions> all, hopeful;
    for (const Degrees& degrees : candidates) {
      all.push_back(degree_options(request, "planner/heuristic"));
      all.back().degrees = degrees;
      if (!cannot_fit(request, all.back())) hopeful.push_back(all.back());
    }
    if (!hopeful.empty()) return hopeful;
    auto ranks_per_model = [](const DegreePlanOptions& o) { return o.degrees.tensor * o.degrees.pipeline; };
    std::stable_sort(all.begin(), all.end(),
                     [&](const auto& a, const auto& b) { return ranks_per_model(a) > ranks_per_model(b); });
    for (const auto& options : all)
      if (fit_plan(request, options).is_ok()) return {options};
    return all;
  }

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
