#include "framework/search/sharding_problem.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

#include "framework/plan/assignment.hpp"
#include "framework/search/cluster_prices.hpp"
#include "framework/search/live_rows.hpp"
#include "framework/search/plan_question.hpp"
#include "framework/solve/solve.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

TrainingGraph deep_gpt(int64_t layers) {
  GptShape shape;
  shape.layers = layers, shape.hidden = 32, shape.heads = 4, shape.vocabulary = 96, shape.batch = 8,
  shape.sequence = 16;
  return make_gpt_training(shape, DType::kF32);
}

Plan plan_on(const TrainingGraph& graph, Degrees degrees) {
  DegreePlanOptions options;
  options.degrees = degrees;
  options.microbatch = 2;
  Plan plan = make_plan(graph, options);
  plan.sharding.clear();
  return plan;
}

struct Built {
  PlanMeshes meshes;
  SharedFacts facts;
  ShardingQuestion question;
  ShardingProblem problem;
};

Built build(const TrainingGraph& graph, const Plan& plan, Bytes memory) {
  static const Cluster cluster = test_cluster(8);
  Built built;
  built.meshes = meshes_of(plan);
  built.facts = facts_of(graph).value();
  built.question = question_of(graph, plan, make_timetable(plan), built.meshes, memory, *built.facts);
  auto problem =
      ShardingProblem::build(built.question, cluster_prices(cluster, built.meshes.meshes, built.meshes.devices));
  BOOST_REQUIRE_MESSAGE(problem.is_ok(), problem.status().to_string());
  built.problem = std::move(*problem);
  BOOST_REQUIRE(built.problem.problem().verify().is_ok());
  return built;
}

}  // namespace

BOOST_AUTO_TEST_CASE(equal_layers_choose_alike_so_that_depth_adds_no_nodes) {
  const TrainingGraph shallow = deep_gpt(3), deep = deep_gpt(12);
  const Built a = build(shallow, plan_on(shallow, {2, 2, 1}), Bytes(0)),
              b = build(deep, plan_on(deep, {2, 2, 1}), Bytes(0));
  BOOST_TEST(a.problem.problem().nodes.size() == b.problem.problem().nodes.size());
  BOOST_TEST(a.problem.problem().edges.size() == b.problem.problem().edges.size());
}

BOOST_AUTO_TEST_CASE(shares_of_layers_add_up_to_the_cost_of_any_choices) {
  const TrainingGraph graph = deep_gpt(4);
  const Built built = build(graph, plan_on(graph, {2, 2, 1}), Bytes(0));
  const ChoiceProblem& problem = built.problem.problem();
  std::mt19937_64 random(1);
  int num_finite = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<int> choices;
    for (const auto& node : problem.nodes) choices.push_back(static_cast<int>(random() % node.size()));
    const double cost = cost_of(problem, choices);
    const LayerShares shares = built.problem.shares(choices);
    double sum = 0;
    for (double share : shares.microbatch) sum += built.question.microbatch_weight * share;
    for (double share : shares.step) sum += built.question.step_weight * share;
    if (cost == kForbidden) {
      BOOST_TEST(sum == kForbidden);
      continue;
    }
    ++num_finite;
    BOOST_TEST(sum == cost, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(shares.microbatch[2] == shares.microbatch[3], boost::test_tools::tolerance(1e-9));
  }
  BOOST_TEST(num_finite > 10);
}

// Rows are what the planner believes; the program is the truth. They differ by wire buffers, versions and totals.
BOOST_AUTO_TEST_CASE(memory_rows_come_near_the_bytes_of_the_programs) {
  const TrainingGraph graph = deep_gpt(4);
  for (Degrees degrees : {Degrees{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 1}, {1, 2, 2}, {1, 1, 4}}) {
    Plan plan = plan_on(graph, degrees);
    const Built built = build(graph, plan, Bytes(int64_t{1} << 40));
    const Solution solution = solve(built.problem.problem());
    BOOST_REQUIRE_MESSAGE(solution.kind == SolveKind::kOptimal, to_string(solution.kind)
                                                                    << " " << solution.cost << " " << solution.bound
                                                                    << " " << solution.excess << " " << degrees.data
                                                                    << degrees.tensor << degrees.pipeline);
    const ChosenShardings chosen = built.problem.chosen(solution.choices);
    BOOST_REQUIRE(state_shardings(graph, {chosen.parameters, chosen.strategies, chosen.stored}, plan).is_ok());
    const auto programs = lower_plan(graph, plan);
    const std::vector<double> excess = excess_of(built.problem.problem(), solution.choices);
    for (size_t s = 0; s < plan.stages.size(); ++s) {
      double row = 0, exact = 0;
      for (size_t r = built.problem.first_row()[s]; r < built.problem.first_row()[s + 1]; ++r)
        row = std::max(row, excess[r] + static_cast<double>(int64_t{1} << 40));
      for (const Program& program : programs)
        if (program.stage.index() == s) exact = std::max(exact, static_cast<double>(program.peak().value));
      BOOST_TEST(row / exact > 0.75, "stage " << s << ": rows " << row << ", program " << exact);
      BOOST_TEST(row / exact < 1.1, "stage " << s << ": rows " << row << ", program " << exact);
    }
  }
}

BOOST_AUTO_TEST_CASE(live_sets_hold_what_backward_reads_and_never_parameters) {
  const TrainingGraph training = deep_gpt(2);
  const Graph& graph = training.graph;
  const std::vector<bool> all(graph.layers().size(), true);
  std::vector<int> classes = {0, 1, 1, 2};
  const auto sets = live_sets(training, all, classes);
  BOOST_REQUIRE(!sets.empty());
  BOOST_TEST(sets.size() <= 6u);
  for (const LiveSet& set : sets)
    for (const LiveValue& live : set) {
      BOOST_TEST((graph.value(live.value).role != Role::kParameter));
      bool is_read = false;
      for (const Op& op : graph.ops())
        is_read = is_read || (op.phase == Phase::kBackward &&
                              std::find(op.inputs.begin(), op.inputs.end(), live.value) != op.inputs.end());
      const Value& value = graph.value(live.value);
      const bool is_forward = !value.producer.is_valid() || graph.op(value.producer).phase == Phase::kForward;
      BOOST_TEST(live.is_stashed == (is_read && is_forward));
    }
}
