#include "framework/simulate/degree_choice.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"

namespace altiplano {

FixedDegrees fixed_degrees(const Options& parallel) {
  auto given = [&](const char* key) { return parallel.has(key) ? static_cast<int>(parallel.get_int(key)) : 0; };
  FixedDegrees fixed{given("data_parallel_size"), given("tensor_parallel_size"), given("pipeline_parallel_size")};
  if (fixed.pipeline == 0 && parallel.has("pipeline.split"))
    fixed.pipeline = static_cast<int>(parallel.get_ints("pipeline.split").size());
  return fixed;
}

Status no_such_degrees(const Options& parallel, const FixedDegrees& fixed, int num_ranks) {
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
  // A split of the pipeline fixes a degree that is not given itself.
  const bool is_split = fixed.pipeline > 0 && !parallel.has("pipeline_parallel_size");
  const std::string key = is_split && keys.size() == 1 ? "pipeline.split" : keys[0];
  const std::string given =
      keys.size() == 1 ? fmt::format("{}", product) : fmt::format("{} = {}", join(words, " x "), product);
  return invalid_argument(
      "{}: {} does not divide {}; start it with -n {} or a multiple (`altiplano launch -n {}` trains), or let the "
      "planner choose",
      parallel.where(key), given, counted(num_ranks, "rank"), product, product);
}

std::vector<Degrees> degrees_in_order(int ranks, int devices_per_node, const FixedDegrees& fixed) {
  std::vector<Degrees> all;
  for (int tensor = 1; tensor <= ranks; ++tensor) {
    if (ranks % tensor != 0 || (fixed.tensor && tensor != fixed.tensor)) continue;
    for (int pipeline = 1; pipeline <= ranks / tensor; ++pipeline) {
      if ((ranks / tensor) % pipeline != 0 || (fixed.pipeline && pipeline != fixed.pipeline)) continue;
      int data = ranks / tensor / pipeline;
      if (!fixed.data || data == fixed.data) all.push_back({data, tensor, pipeline});
    }
  }
  auto rank_of = [&](const Degrees& d) {
    bool crosses_nodes = d.tensor > devices_per_node || devices_per_node % d.tensor != 0;
    return std::tuple(crosses_nodes, d.tensor * d.pipeline, d.pipeline);
  };
  std::stable_sort(all.begin(), all.end(), [&](const Degrees& a, const Degrees& b) { return rank_of(a) < rank_of(b); });
  return all;
}

Result<Degrees> replicas_only(const PlanRequest& request) {
  const FixedDegrees fixed = fixed_degrees(request.options);
  const int tensor = std::max(1, fixed.tensor), pipeline = std::max(1, fixed.pipeline);
  const Degrees degrees{request.num_ranks / (tensor * pipeline), tensor, pipeline};
  if (degrees.num_ranks() != request.num_ranks) return no_such_degrees(request.options, fixed, request.num_ranks);
  if (fixed.data != 0 && fixed.data != degrees.data)
    return invalid_argument(
        "{}: {} does not make {}; planner/deepspeed and planner/fsdp make every rank a replica; give "
        "tensor_parallel_size or pipeline_parallel_size too, or leave it out",
        request.options.where("data_parallel_size"), fixed.data, counted(request.num_ranks, "rank"));
  return degrees;
}

namespace {

/// Those whose parameters and states fit; when there are none the first of those that split them most, for its figures.
std::vector<DegreePlanOptions> worth_trying(const PlanRequest& request, std::vector<DegreePlanOptions> all) {
  std::vector<DegreePlanOptions> hopeful;
  for (const DegreePlanOptions& options : all)
    if (!cannot_fit(request, options)) hopeful.push_back(options);
  if (!hopeful.empty()) return hopeful;
  auto split = [](const DegreePlanOptions& o) { return std::pair(o.degrees.tensor * o.degrees.pipeline, o.zero); };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return split(a) > split(b); });
  for (const auto& options : all)
    if (fit_plan(request, options).is_ok()) return {options};
  return all;
}

Bytes peak_of(const FittedPlan& fitted) {
  return *std::ranges::max_element(fitted.estimate.peak_per_rank);
}

}  // namespace

Result<Plan> first_that_fits(const PlanRequest& request, const std::vector<DegreePlanOptions>& in_order) {
  std::optional<FittedPlan> nearest;
  std::optional<DegreePlanOptions> nearest_options;
  Status refusal;
  for (const DegreePlanOptions& options : worth_trying(request, in_order)) {
    auto fitted = fit_plan(request, options);
    if (!fitted.is_ok()) {
      if (refusal.is_ok()) refusal = fitted.status();
      continue;
    }
    if (fitted->fits) {
      fitted->plan.sharding.clear();
      return std::move(fitted->plan);
    }
    if (!nearest || peak_of(*fitted) < peak_of(*nearest)) {
      nearest = std::move(*fitted);
      nearest_options = options;
    }
  }
  return nearest ? does_not_fit(request, *nearest_options, *nearest) : refusal;
}

}  // namespace altiplano
