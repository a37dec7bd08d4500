#include "framework/simulate/fit.hpp"

#include <algorithm>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/sharding/dims.hpp"
#include "framework/sharding/tensor_parallel.hpp"

namespace altiplano {

namespace {

/// In ascending order.
std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> low, high;
  for (int64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    low.push_back(i);
    if (i * i != number) high.insert(high.begin(), number / i);
  }
  low.insert(low.end(), high.begin(), high.end());
  return low;
}

/// Sizes worth trying, best first.
std::vector<int64_t> microbatch_candidates(const PlanRequest& request, const DegreePlanOptions& options) {
  int64_t per_replica = request.global_batch / options.degrees.data;
  if (options.microbatch > 0) return {options.microbatch};
  if (request.accumulation > 0) return {std::max<int64_t>(1, per_replica / request.accumulation)};
  int64_t wanted = options.degrees.pipeline > 1 ? std::min<int64_t>(per_replica, 4 * options.degrees.pipeline) : 1;
  std::vector<int64_t> sizes;
  for (int64_t number : divisors(per_replica))
    if (number >= wanted && number <= Plan::kMostMicrobatches) sizes.push_back(per_replica / number);
  return sizes.empty() ? std::vector<int64_t>{1} : sizes;
}

/// What the fullest rank needs at least, whatever the microbatch: its share of parameters, gradients and states.
Bytes least_bytes(const PlanRequest& request, const DegreePlanOptions& options) {
  const Graph& graph = request.graph->graph;
  double parameters = 0, gradients = 0, states = 0;
  for (const Parameter& p : graph.parameters())
    parameters += static_cast<double>(num_elements(graph.value(p.value).shape) * size_of(graph.value(p.value).dtype));
  for (const ParameterTraining& p : request.graph->parameters) {
    gradients +=
        static_cast<double>(num_elements(graph.value(p.parameter).shape) * size_of(graph.value(p.parameter).dtype));
    for (ValueId state : p.states)
      states += static_cast<double>(num_elements(graph.value(state).shape) * size_of(graph.value(state).dtype));
  }
  const Degrees& degrees = options.degrees;
  const double model_ranks = static_cast<double>(degrees.tensor) * degrees.pipeline;
  const bool own_specs = !request.options.get_map("sharding").empty();  // which may split over the replicas too
  auto holders = [&](int zero) { return own_specs || options.zero >= zero ? degrees.num_ranks() : model_ranks; };
  return Bytes(
      static_cast<int64_t>(std::min(4e18, states / holders(1) + gradients / holders(2) + parameters / holders(3))));
}

Result<FittedPlan> plan_with(const PlanRequest& request, const DegreePlanOptions& options) {
  FittedPlan fitted;
  ALTIPLANO_ASSIGN(fitted.plan, plan_from_degrees(*request.graph, *request.cluster, options));
  ALTIPLANO_RETURN_IF_ERROR(add_degree_sharding(request, fitted.plan));
  ALTIPLANO_RETURN_IF_ERROR(verify_plan(fitted.plan, *request.graph));
  ALTIPLANO_ASSIGN(fitted.estimate, request.services->estimate(fitted.plan));
  fitted.plan.predicted = fitted.estimate.prediction;
  fitted.fits = true;
  for (Bytes peak : fitted.estimate.peak_per_rank) fitted.fits = fitted.fits && peak <= request.memory_per_rank;
  return fitted;
}

struct Change {
  std::string text;
  DegreePlanOptions options;
  int num_ranks;
};

/// Changes in the order of how little they disturb.
std::vector<Change> possible_changes(const PlanRequest& request, const DegreePlanOptions& options, int64_t microbatch) {
  std::vector<Change> changes;
  for (int zero = options.zero + 1; options.degrees.data > 1 && zero <= Plan::kMostZero; ++zero) {
    DegreePlanOptions o = options;
    o.zero = zero;
    changes.push_back({fmt::format("parallel.zero_stage: {}", zero), o, request.num_ranks});
  }
  int64_t per_replica = request.global_batch / options.degrees.data;
  for (int64_t number : divisors(per_replica)) {
    const int64_t size = per_replica / number;
    if (size >= microbatch || number > Plan::kMostMicrobatches) continue;
    DegreePlanOptions o = options;
    o.microbatch = size;
    changes.push_back({fmt::format("train.micro_batch_size: {}", size), o, request.num_ranks});
  }
  for (int ranks = request.num_ranks; ranks <= 8 * request.num_ranks; ranks *= 2) {
    for (int tensor = 1; tensor <= std::min(ranks, 64); ++tensor) {
      for (int pipeline = 1; pipeline * tensor <= ranks; ++pipeline) {
        if (ranks % (tensor * pipeline) != 0) continue;
        if (ranks == request.num_ranks && tensor <= options.degrees.tensor && pipeline <= options.degrees.pipeline)
          continue;
        DegreePlanOptions o = options;
        o.degrees = {ranks / tensor / pipeline, tensor, pipeline};
        o.microbatch = 1;
        o.split.clear();
        std::string text =
            fmt::format("parallel: {{tensor_parallel_size: {}, pipeline_parallel_size: {}}}, train.micro_batch_size: 1",
                        tensor, pipeline);
        if (ranks != request.num_ranks) text += ", on " + counted(ranks, "rank");
        changes.push_back({text, o, ranks});
      }
    }
  }
  return changes;
}

}  // namespace

Status add_given_sharding(const PlanRequest& request, Plan& plan) {
  for (size_t i = 0; const auto& [pattern, text] : request.options.get_map("sharding")) {
    const std::string where = request.options.where("sharding", i++, pattern);
    auto spec = ShardingSpec::parse(text);
    if (!spec.is_ok()) return invalid_argument("{}: {}", where, spec.status().message());
    const auto& parameters = request.graph->graph.parameters();
    auto matches = [&, &pattern = pattern](const Parameter& p) {
      return glob_match(pattern, request.graph->graph.value(p.value).name);
    };
    if (std::none_of(parameters.begin(), parameters.end(), matches))
      return invalid_argument("{}: '{}' matches no parameter of the model; they are named as in {}", where, pattern,
                              request.graph->graph.value(parameters.back().value).name);
    plan.sharding.emplace_back(pattern, *spec);
  }
  return Status::ok();
}

Status add_degree_sharding(const PlanRequest& request, Plan& plan) {
  ALTIPLANO_RETURN_IF_ERROR(add_given_sharding(request, plan));
  int tensor = 1;
  for (const PlanStage& stage : plan.stages) tensor = std::max(tensor, stage.mesh.degree(Axis::kTensor));
  ALTIPLANO_ASSIGN(auto rules, rules_of(request.graph->graph));
  ALTIPLANO_ASSIGN(auto specs, tensor_parallel_specs(request.graph->graph, rules, tensor));
  for (const auto& [id, spec] : specs) plan.sharding.emplace_back(request.graph->graph.value(id).name, spec);
  return Status::ok();
}

bool cannot_fit(const PlanRequest& request, const DegreePlanOptions& options) {
  return least_bytes(request, options) > request.memory_per_rank;
}

DegreePlanOptions degree_options(const PlanRequest& request, const std::string& planner) {
  DegreePlanOptions options;
  options.planner = planner;
  options.microbatch = request.microbatch;
  options.zero = request.zero;
  options.sequence_parallel = request.options.get_bool("sequence_parallel");
  if (request.options.has("pipeline.split")) options.split = request.options.get_ints("pipeline.split");
  std::string schedule = request.options.get_string("schedule");
  options.schedule = schedule == "auto" ? "1f1b" : schedule;
  return options;
}

Result<FittedPlan> fit_plan(const PlanRequest& request, DegreePlanOptions options) {
  if (request.global_batch % options.degrees.data != 0)
    return check_batch(request.global_batch, std::max<int64_t>(1, options.microbatch), options.degrees.data);
  std::optional<FittedPlan> last;
  std::vector<int64_t> sizes = microbatch_candidates(request, options);
  if (cannot_fit(request, options)) sizes = {sizes.back()};  // for the figures of the refusal
  for (int64_t size : sizes) {
    options.microbatch = size;
    ALTIPLANO_ASSIGN(last, plan_with(request, options));
    if (last->fits) break;
  }
  return std::move(*last);
}

Status does_not_fit(const PlanRequest& request, const DegreePlanOptions& options, const FittedPlan& fitted) {
  const PlanEstimate& e = fitted.estimate;
  size_t fullest =
      static_cast<size_t>(std::max_element(e.peak_per_rank.begin(), e.peak_per_rank.end()) - e.peak_per_rank.begin());
  std::string text = fmt::format("rank {} needs {}, has {} (weights {}, gradients {}, optimizer {}, activations {}).",
                                 fullest, to_string(e.peak_per_rank[fullest]), to_string(request.memory_per_rank),
                                 to_string(e.weights_per_rank[fullest]), to_string(e.gradients_per_rank[fullest]),
                                 to_string(e.optimizer_per_rank[fullest]), to_string(e.activations_per_rank[fullest]));
  if (!request.wants_advice) return infeasible("no feasible plan: {}", text);
  for (const Change& change : possible_changes(request, options, fitted.plan.microbatch)) {
    if (cannot_fit(request, change.options)) continue;
    auto changed = plan_with(request, change.options);
    if (!changed.is_ok() || !changed->fits) continue;
    Bytes peak = *std::max_element(changed->estimate.peak_per_rank.begin(), changed->estimate.peak_per_rank.end());
    return infeasible("no feasible plan: {} {}\n    {}   ({} per rank)", text, kSmallestChange, change.text,
                      to_string(peak));
  }
  return infeasible("no feasible plan: {} No change of microbatch, ZeRO stage, degrees or up to {} would fit.", text,
                    counted(8 * request.num_ranks, "rank"));
}

}  // namespace altiplano
