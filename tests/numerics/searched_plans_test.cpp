// Plan invariance for plans whose shardings were searched: whatever a problem of shardings may choose can be said in a
// plan, lowered and run, and trains the same model.
#include <random>

#include "framework/plan/assignment.hpp"
#include "framework/search/plan_question.hpp"
#include "framework/solve/solve.hpp"
#include "tests/support/invariance.hpp"
#include "tests/support/planner_request.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

/// Prices drawn anew for every op and reshard, so that unusual choices win.
ShardingPrices random_prices(uint64_t seed) {
  auto random = std::make_shared<std::mt19937_64>(seed);
  auto draw = [random] { return static_cast<double>((*random)() % 1000); };
  ShardingPrices prices;
  prices.compute = [draw](const Op&, std::span<const ValueType>, std::span<const ValueType>) { return draw(); };
  prices.reshard = [draw](size_t, const ReshardStep&, const Shape&, DType, bool) { return draw() / 4; };
  prices.storage = [draw](size_t, const Value&, const ShardingSpec&) { return draw(); };
  return prices;
}

/// The case's stages with shardings that minimise random prices.
Plan plan_at_random(const PlanCase& c, const TrainingGraph& graph, uint64_t seed) {
  Plan plan = plan_of(c, graph);
  plan.sharding.clear();
  const PlanMeshes meshes = meshes_of(plan);
  const SharedFacts facts = facts_of(graph).value();
  const ShardingQuestion question = question_of(graph, plan, make_timetable(plan), meshes, Bytes(0), *facts);
  auto problem = ShardingProblem::build(question, random_prices(seed));
  BOOST_REQUIRE_MESSAGE(problem.is_ok(), problem.status().to_string());
  SolveOptions options;
  options.back_end = SolveBackEnd::kOwn;
  const Solution solution = solve(problem->problem(), options);
  BOOST_REQUIRE(!solution.choices.empty());
  const ChosenShardings chosen = problem->chosen(solution.choices);
  Status status = state_shardings(graph, {chosen.parameters, chosen.strategies, chosen.stored}, plan);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  status = verify_plan(plan, graph);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), plan.to_yaml() << status.to_string());
  auto parsed = Plan::from_yaml(plan.to_yaml(), "plan.yaml");
  BOOST_REQUIRE_MESSAGE(parsed.is_ok(), parsed.status().to_string());
  BOOST_TEST(parsed->to_yaml() == plan.to_yaml());
  // What the plan means is what was chosen.
  auto assignment = assign_shardings(graph, plan);
  BOOST_REQUIRE_MESSAGE(assignment.is_ok(), assignment.status().to_string());
  for (const Op& op : graph.graph.ops()) {
    if (op.phase == Phase::kUpdate) continue;
    const Strategy& meant = assignment->strategies[op.id.index()];
    const Strategy& wanted = chosen.strategies[op.id.index()];
    BOOST_TEST((meant.inputs == wanted.inputs && meant.outputs == wanted.outputs), op.name);
  }
  for (const auto& [id, spec] : chosen.stored)
    BOOST_TEST(assignment->stored[id.index()].to_string() == spec.to_string(), graph.graph.value(id).name);
  return plan;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(searched_plans)

BOOST_AUTO_TEST_CASE(shardings_chosen_at_random_prices_train_as_one_rank) {
  TrainOptions options;
  options.steps = 2;
  uint64_t seed = 1;
  for (Degrees degrees :
       {Degrees{1, 2, 1}, {2, 2, 1}, {1, 4, 1}, {2, 1, 1}, {1, 2, 2}, {2, 2, 2}, {2, 1, 2}, {1, 3, 1}}) {
    for (int round = 0; round < 2; ++round) {
      PlanCase c;
      c.degrees = degrees;
      c.microbatch = 6;
      c.zero = static_cast<int>(seed % 4);
      c.tied = seed % 3 != 0;
      c.fused = seed % 4 == 0;
      const TrainingGraph& graph = graph_of(c);
      const Plan plan = plan_at_random(c, graph, ++seed);
      const std::string off = difference(train(graph, plan, options), one_rank_run(c, DType::kF64, options));
      BOOST_TEST(off.empty(), plan.to_yaml() << off);
    }
  }
}

BOOST_AUTO_TEST_CASE(plans_of_planner_ilp_train_as_one_rank) {
  TrainOptions options;
  options.steps = 2;
  for (Degrees degrees : {Degrees{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 1}, {1, 2, 2}, {2, 2, 2}}) {
    PlanCase c;
    c.degrees = degrees;
    c.microbatch = 6;
    const TrainingGraph& graph = graph_of(c);
    Plan plan = plan_of(c, graph);
    plan.sharding.clear();
    PlannerBench bench(graph, degrees.num_ranks());
    const Status status = planner_plugin("ilp").sharding()->plan_sharding(bench.request(), plan);
    BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
    const std::string off = difference(train(graph, plan, options), one_rank_run(c, DType::kF64, options));
    BOOST_TEST(off.empty(), plan.to_yaml() << off);
  }
}

// What does not fit as the column-and-row rule has it is stored in smaller parts.
BOOST_AUTO_TEST_CASE(planner_ilp_keeps_within_the_memory_and_trains_as_one_rank) {
  TrainOptions options;
  options.steps = 2;
  PlanCase c;
  c.degrees = {2, 2, 1};
  c.microbatch = 6;
  const TrainingGraph& graph = graph_of(c);
  PlannerBench bench(graph, 4);
  Plan roomy = plan_of(c, graph);
  roomy.sharding.clear();
  Status status = planner_plugin("ilp").sharding()->plan_sharding(bench.request(), roomy);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  const Bytes before = roomy.predicted.peak_memory[0];
  PlanRequest tight = bench.request();
  tight.memory_per_rank = Bytes(before.value * 49 / 50);
  Plan plan = plan_of(c, graph);
  plan.sharding.clear();
  status = planner_plugin("ilp").sharding()->plan_sharding(tight, plan);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  BOOST_TEST(plan.predicted.peak_memory[0].value <= tight.memory_per_rank.value);
  BOOST_TEST(plan.predicted.step.value >= roomy.predicted.step.value * 0.999);
  const std::string off = difference(train(graph, plan, options), one_rank_run(c, DType::kF64, options));
  BOOST_TEST(off.empty(), plan.to_yaml() << off);
  tight.memory_per_rank = Bytes(before.value / 20);
  Plan none = plan_of(c, graph);
  none.sharding.clear();
  status = planner_plugin("ilp").sharding()->plan_sharding(tight, none);
  BOOST_TEST((status.code() == StatusCode::kInfeasible), status.to_string());
}

BOOST_AUTO_TEST_CASE(plans_of_planner_dp_train_as_one_rank_and_are_predicted_no_slower_than_the_rules) {
  TrainOptions options;
  options.steps = 2;
  for (int ranks : {1, 2, 4, 6}) {
    PlanCase c;
    const TrainingGraph& graph = graph_of(c);
    PlannerBench bench(graph, ranks);
    const PlanRequest request = bench.request();
    auto planned = [&](const Planner& planner) {
      auto plan = planner.stages()->plan_stages(request);
      BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
      const Status status = planner.sharding()->plan_sharding(request, *plan);
      BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
      return std::move(*plan);
    };
    const Plan plan = planned(planner_plugin("dp")), rules = planned(planner_plugin("heuristic"));
    BOOST_TEST(plan.predicted.step.value <= 1.005 * request.services->estimate(rules).value().prediction.step.value,
               plan.to_yaml() << rules.to_yaml());
    const std::string off = difference(train(graph, plan, options), one_rank_run(c, DType::kF64, options));
    BOOST_TEST(off.empty(), plan.to_yaml() << off);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
