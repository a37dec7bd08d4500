#include "framework/solve/elimination.hpp"

#include <boost/test/unit_test.hpp>

#include "framework/solve/simplify.hpp"
#include "tests/support/choice_problems.hpp"

using namespace altiplano;
using namespace altiplano::test;

BOOST_AUTO_TEST_CASE(min_marginals_are_the_minima_with_one_choice_fixed) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomProblem want{seed % 2 ? ProblemGraph::kRandom : ProblemGraph::kTransformer, 3 + static_cast<int>(seed % 5), 1,
                       4};
    want.forbidden = seed % 3 ? 0 : 0.1;
    ChoiceProblem problem = random_problem(want, seed);
    problem.nodes.push_back({4, 2});  // a component of its own
    if (try_all(problem).cost == kForbidden) continue;
    Elimination elimination(problem);
    BOOST_TEST(elimination.is_exact());
    BOOST_TEST(elimination.minimise(problem.nodes).bound == try_all(problem).cost, boost::test_tools::tolerance(1e-12));
    const auto marginals = elimination.min_marginals(problem.nodes);
    for (size_t v = 0; v < problem.nodes.size(); ++v)
      for (size_t k = 0; k < problem.nodes[v].size(); ++k) {
        ChoiceProblem fixed = problem;
        for (size_t other = 0; other < fixed.nodes[v].size(); ++other)
          if (other != k) fixed.nodes[v][other] = kForbidden;
        const double cost = try_all(fixed).cost;
        if (cost == kForbidden)
          BOOST_TEST(marginals[v][k] == kForbidden);
        else
          BOOST_TEST(marginals[v][k] == cost, boost::test_tools::tolerance(1e-9));
      }
  }
}

BOOST_AUTO_TEST_CASE(split_tables_bound_from_below) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const ChoiceProblem problem = random_problem({ProblemGraph::kRandom, 8, 3, 4}, seed);
    Elimination split(problem, 4);
    const double cost = try_all(problem).cost;
    const auto minimum = split.minimise(problem.nodes);
    BOOST_TEST(minimum.bound <= cost + 1e-12);
    BOOST_TEST(cost_of(problem, minimum.choices) >= cost - 1e-12);
    const auto marginals = split.min_marginals(problem.nodes);
    for (size_t v = 0; v < problem.nodes.size(); ++v)
      BOOST_TEST(*std::min_element(marginals[v].begin(), marginals[v].end()) <= cost + 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(a_chain_has_width_one) {
  const ChoiceProblem problem = random_problem({ProblemGraph::kChain, 50, 4, 4}, 1);
  BOOST_TEST(Elimination(problem).width() == 1);
  BOOST_TEST(Elimination(problem).split_nodes().empty());
}

BOOST_AUTO_TEST_CASE(simplifying_keeps_the_minimum_and_restores_choices_of_equal_cost) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    RandomProblem want{seed % 2 ? ProblemGraph::kRandom : ProblemGraph::kChain, 2 + static_cast<int>(seed % 6), 1, 4};
    want.forbidden = seed % 3 ? 0 : 0.3;
    want.rows = static_cast<int>(seed % 3);
    const ChoiceProblem problem = random_problem(want, 300 + seed);
    const SimplifiedProblem simple = simplify(problem);
    const double cost = try_all(problem).cost;
    if (simple.constant == kForbidden) {
      BOOST_TEST(cost == kForbidden);
      continue;
    }
    const double rest = try_all(simple.problem).cost;
    BOOST_TEST_CONTEXT("seed " << seed) {
      if (cost == kForbidden)
        BOOST_TEST(rest == kForbidden);
      else
        BOOST_TEST(rest + simple.constant == cost, boost::test_tools::tolerance(1e-9));
      std::vector<int> any(simple.problem.nodes.size(), 0);
      const double of_any = cost_of(simple.problem, any);
      if (of_any != kForbidden)
        BOOST_TEST(cost_of(problem, simple.restored(any)) == of_any + simple.constant,
                   boost::test_tools::tolerance(1e-9));
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_that_another_implies_are_dropped) {
  ChoiceProblem problem;
  problem.nodes = {{1, 2}, {2, 1}};
  problem.edges = {{0, 1, {0, 5, 5, 0}}};
  // Above the least of each node the uses are {0, 4} {3, 0} within 3, {0, 3} {2, 0} within 4, {0, 5} within 4.
  problem.rows = {{6, {{0, {1, 5}}, {1, {5, 2}}}}, {5, {{0, {1, 4}}, {1, {2, 0}}}}, {4, {{0, {0, 5}}}}};
  const SimplifiedProblem simple = simplify(problem);
  BOOST_REQUIRE(simple.problem.rows.size() == 2u);
  BOOST_TEST(simple.problem.rows[0].limit == 3, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(simple.problem.rows[1].limit == 4, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(simple.problem.rows[1].terms.size() == 1u);
}

BOOST_AUTO_TEST_CASE(dominated_choices_and_edges_that_are_sums_leave_nothing_to_decide) {
  ChoiceProblem problem;
  problem.nodes = {{1, 2}, {5, 0, 3}};
  problem.edges = {{0, 1, {1, 2, 3, 11, 12, 13}}};  // 10 * choice of the first + choice of the second + 1
  const SimplifiedProblem simple = simplify(problem);
  BOOST_TEST(simple.problem.nodes.size() == 0u);
  BOOST_TEST(simple.constant == 3);
  BOOST_TEST(simple.restored({}) == (std::vector<int>{0, 1}), boost::test_tools::per_element());
}
