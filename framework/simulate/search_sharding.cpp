#include "framework/simulate/search_sharding.hpp"

#include <algorithm>

#include "framework/plan/assignment.hpp"
#include "framework/search/cluster_prices.hpp"
#include "framework/search/plan_question.hpp"
#include "framework/simulate/fit.hpp"
#include "framework/solve/solve.hpp"

namespace altiplano {

namespace {

/// The exact memory differs from the rows by what kernels, buckets and wire buffers take.
constexpr int kMostTries = 10;
constexpr int64_t kMostBranches = 60;
/// By how much of a rank's memory rows may count too much, and by how much two plans of one job may differ in that.
constexpr double kRowError = 0.15, kRowSpread = 0.03;

Result<Timetable> timetable_of(const PlanRequest& request, const Plan& plan) {
  ALTIPLANO_ASSIGN(const Schedule* schedule, request.services->schedule(plan.schedule));
  ScheduleRequest want;
  want.num_stages = static_cast<int>(plan.stages.size());
  want.num_microbatches = plan.num_microbatches;
  want.chunks_per_worker = plan.chunks;
  return schedule->build(want);
}

Status state(const PlanRequest& request, const SharedFacts& facts, const ChosenShardings& chosen, Plan& plan) {
  WantedShardings wanted{chosen.parameters, chosen.strategies, chosen.stored};
  for (const Parameter& p : request.graph->graph.parameters())
    if (plan.find_spec(request.graph->graph.value(p.value).name) != nullptr) wanted.parameters.erase(p.value);
  ALTIPLANO_RETURN_IF_ERROR(state_shardings(*request.graph, wanted, plan, facts));
  return verify_plan(plan, *request.graph, facts.get());
}

/// True when every rank fits. Where one does not, what the stage's rows counted for these choices must shrink by what
/// lacked.
bool lower_limits(const PlanRequest& request, const PlanEstimate& estimate, const std::vector<int>& choices,
                  ShardingProblem& problem, MemorySeen& seen) {
  bool fits = true;
  ++seen.number;
  const std::vector<double> excess = excess_of(problem.problem(), choices);
  for (size_t s = 0; s < estimate.prediction.peak_memory.size(); ++s) {
    double most = 0;
    for (size_t r = problem.first_row()[s]; r < problem.first_row()[s + 1]; ++r)
      most = std::max(most, problem.problem().rows[r].limit + excess[r]);
    const double too_much = most - static_cast<double>(estimate.prediction.peak_memory[s].value);
    seen.most_too_much = std::max(seen.most_too_much,
                                  too_much / static_cast<double>(std::max<int64_t>(1, request.memory_per_rank.value)));
    const Bytes lacks = estimate.prediction.peak_memory[s] - request.memory_per_rank;
    if (lacks <= Bytes(0)) continue;
    fits = false;
    for (size_t r = problem.first_row()[s]; r < problem.first_row()[s + 1]; ++r) {
      double& limit = problem.problem().rows[r].limit;
      limit = std::min(limit, most - static_cast<double>(lacks.value));
    }
  }
  return fits;
}

/// Rows may count more than a program takes, so what lacks little by them may fit.
bool is_within_error(const PlanRequest& request, const Solution& solution, const MemorySeen& seen) {
  const double error =
      seen.number == 0 ? kRowError : std::min(kRowError, std::max(0.0, seen.most_too_much) + kRowSpread);
  return !solution.choices.empty() && solution.excess < error * static_cast<double>(request.memory_per_rank.value);
}

void raise_limits(const Solution& solution, ShardingProblem& problem) {
  for (LimitRow& row : problem.problem().rows) row.limit += 1.02 * solution.excess;
}

Status refusal(const PlanRequest& request, const Solution& solution) {
  if (solution.kind == SolveKind::kInfeasible)
    return infeasible(
        "no feasible plan: whatever the sharding, a rank needs {} more than the {} it has. Take more ranks, "
        "smaller microbatches or other degrees",
        to_string(Bytes(static_cast<int64_t>(solution.excess))), to_string(request.memory_per_rank));
  return infeasible("no feasible plan: the search for a sharding ended {} without an answer", to_string(solution.kind));
}

}  // namespace

Status search_sharding(const PlanRequest& request, Plan& plan, bool previews, MemorySeen* known) {
  MemorySeen own;
  MemorySeen& seen = known != nullptr ? *known : own;
  ALTIPLANO_RETURN_IF_ERROR(add_given_sharding(request, plan));
  const PlanMeshes meshes = meshes_of(plan);
  const Cluster cluster = request.cluster->resized(plan.num_slots());
  ALTIPLANO_ASSIGN(const Timetable timetable, timetable_of(request, plan));
  ALTIPLANO_ASSIGN(const SharedFacts facts, facts_of(*request.graph, request.facts));
  const ShardingQuestion question =
      question_of(*request.graph, plan, timetable, meshes, request.memory_per_rank, *facts);
  const ShardingPrices prices = cluster_prices(cluster, meshes.meshes, meshes.devices);
  ALTIPLANO_ASSIGN(ShardingProblem problem, ShardingProblem::build(question, prices));
  SolveOptions options;
  options.most_branches = kMostBranches;
  options.time = Seconds(60);  // branches end the search first, so that equal requests give equal plans
  options.back_end = SolveBackEnd::kOwn;
  for (int attempt = 0; attempt < kMostTries; ++attempt) {
    const Solution solution = solve(problem.problem(), options);
    if (attempt == 0 && solution.kind == SolveKind::kInfeasible && is_within_error(request, solution, seen)) {
      raise_limits(solution, problem);
      continue;
    }
    if (solution.kind == SolveKind::kInfeasible || solution.choices.empty()) return refusal(request, solution);
    options.start = solution.choices;
    Plan tried = plan;
    ALTIPLANO_RETURN_IF_ERROR(state(request, facts, problem.chosen(solution.choices), tried));
    const auto& estimate_of = previews ? request.services->preview : request.services->estimate;
    ALTIPLANO_ASSIGN(const PlanEstimate estimate, estimate_of(tried));
    tried.predicted = estimate.prediction;
    if (lower_limits(request, estimate, solution.choices, problem, seen)) {
      plan = std::move(tried);
      return Status::ok();
    }
  }
  return infeasible("no feasible plan: no sharding was found that keeps within {} per rank in {} tries",
                    to_string(request.memory_per_rank), kMostTries);
}

}  // namespace altiplano
