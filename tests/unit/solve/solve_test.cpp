#include "framework/solve/solve.hpp"

#include <boost/test/unit_test.hpp>

#include "framework/solve/cbc.hpp"
#include "tests/support/choice_problems.hpp"
#include "tests/support/sanitized.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

const ProblemGraph kGraphs[] = {ProblemGraph::kChain, ProblemGraph::kTransformer, ProblemGraph::kRandom};

SolveOptions exact(SolveBackEnd back_end = SolveBackEnd::kOwn) {
  SolveOptions options;
  options.gap = 0;
  options.time = Seconds(300);
  options.back_end = back_end;
  return options;
}

void check_against_all(const ChoiceProblem& problem, const Solution& solution, const std::string& name) {
  const Exhaustive all = try_all(problem);
  BOOST_TEST_CONTEXT(name) {
    if (all.excess == kForbidden) {
      BOOST_TEST(to_string(solution.kind) == std::string("all forbidden"));
    } else if (all.cost == kForbidden) {
      BOOST_TEST(to_string(solution.kind) == std::string("infeasible"));
      BOOST_TEST(solution.excess == all.excess, boost::test_tools::tolerance(1e-5));
      BOOST_TEST(solution.excess_bound <= all.excess * (1 + 1e-9));
      BOOST_TEST(largest_excess(problem, solution.choices) == solution.excess, boost::test_tools::tolerance(1e-9));
    } else {
      BOOST_TEST(to_string(solution.kind) == std::string("optimal"));
      BOOST_TEST(solution.gap() <= 1e-9);
      BOOST_TEST(solution.cost == all.cost, boost::test_tools::tolerance(1e-9));
      BOOST_TEST(cost_of(problem, solution.choices) == solution.cost, boost::test_tools::tolerance(1e-12));
      BOOST_TEST(is_within_limits(problem, solution.choices));
      BOOST_TEST(solution.bound <= solution.cost);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(four_hundred_random_problems_without_rows_are_solved_as_by_trying_everything) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomProblem want{kGraphs[seed % 3], 2 + static_cast<int>(seed % 7), 1, 4};
    want.forbidden = seed % 4 == 0 ? 0.4 : 0;
    const ChoiceProblem problem = random_problem(want, seed);
    check_against_all(problem, solve(problem, exact()), fmt::format("seed {}", seed));
  }
}

BOOST_AUTO_TEST_CASE(eight_hundred_random_problems_with_rows_are_solved_as_by_trying_everything) {
  for (uint64_t seed = 0; seed < 800; ++seed) {
    RandomProblem want{kGraphs[seed % 3], 3 + static_cast<int>(seed % 6), 1, 4};
    want.forbidden = seed % 5 == 0 ? 0.2 : 0;
    want.rows = seed % 2 ? 1 : 1 + static_cast<int>(seed / 2 % 4);
    want.tightness = -0.1 + 0.1 * static_cast<double>(seed / 7 % 8);  // some have no answer
    const ChoiceProblem problem = random_problem(want, 1000 + seed);
    check_against_all(problem, solve(problem, exact()), fmt::format("seed {}", seed));
  }
}

BOOST_AUTO_TEST_CASE(cbc_and_the_own_search_agree_on_problems_too_large_to_try_everything) {
  for (uint64_t seed = 0; seed < 24; seed += every(7)) {
    RandomProblem want{kGraphs[seed % 3], 20 + static_cast<int>(seed % 4) * 5, 3, 6};
    want.rows = static_cast<int>(seed % 4);
    want.tightness = 0.3;
    const ChoiceProblem problem = random_problem(want, 5000 + seed);
    const Solution own = solve(problem, exact()), cbc = solve(problem, exact(SolveBackEnd::kCbc));
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(to_string(own.kind) == to_string(cbc.kind));
      BOOST_TEST(own.cost == cbc.cost, boost::test_tools::tolerance(1e-7));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_bound_is_below_and_a_gap_is_kept_on_two_hundred_nodes_with_a_row) {
  for (ProblemGraph graph : kGraphs) {
    RandomProblem want{graph, 200, 8, 12};
    want.rows = 1;
    want.tightness = 0.3;
    const ChoiceProblem problem = random_problem(want, 77);
    const Solution solution = solve(problem);
    BOOST_TEST(to_string(solution.kind) == std::string("optimal"));
    BOOST_TEST(solution.gap() <= 1e-3);
    BOOST_TEST(is_within_limits(problem, solution.choices));
  }
}

BOOST_AUTO_TEST_CASE(solving_twice_gives_the_same_choices) {
  RandomProblem want{ProblemGraph::kRandom, 40, 3, 8};
  want.rows = 3;
  const ChoiceProblem problem = random_problem(want, 3);
  const Solution a = solve(problem), b = solve(problem);
  BOOST_TEST(a.choices == b.choices, boost::test_tools::per_element());
  BOOST_TEST(a.num_branches == b.num_branches);
}

BOOST_AUTO_TEST_CASE(without_time_the_answer_is_no_worse_than_its_start) {
  RandomProblem want{ProblemGraph::kTransformer, 120, 6, 10};
  want.rows = 2;
  const ChoiceProblem problem = random_problem(want, 9);
  SolveOptions options;
  options.start = solve(problem).choices;
  options.time = Seconds(0);
  const Solution hurried = solve(problem, options);
  BOOST_TEST(hurried.cost <= cost_of(problem, options.start) * (1 + 1e-12));
  BOOST_TEST(hurried.bound <= hurried.cost);
  options.start.clear();
  const Solution nothing = solve(problem, options);
  BOOST_TEST((nothing.kind == SolveKind::kUnknown || is_within_limits(problem, nothing.choices)));
}

BOOST_AUTO_TEST_CASE(a_graph_too_wide_for_its_tables_is_solved_all_the_same) {
  // Every node tied to every other, and tables of no more than two nodes.
  for (SolveBackEnd back_end : {SolveBackEnd::kOwn, SolveBackEnd::kAuto}) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      ChoiceProblem problem = random_problem({ProblemGraph::kChain, 7, 3, 4}, seed);
      std::mt19937_64 random(seed);
      for (int a = 0; a < 7; ++a)
        for (int b = a + 2; b < 7; ++b) {
          ChoiceEdge edge{a, b, {}};
          edge.costs.resize(problem.nodes[static_cast<size_t>(a)].size() *
                            problem.nodes[static_cast<size_t>(b)].size());
          for (double& cost : edge.costs) cost = static_cast<double>(random() % 5);
          problem.edges.push_back(std::move(edge));
        }
      SolveOptions options = exact(back_end);
      options.most_table_entries = 16;
      check_against_all(problem, solve(problem, options), fmt::format("seed {}", seed));
    }
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_fit_says_by_how_much_the_limit_is_too_small) {
  ChoiceProblem problem;
  problem.nodes = {{1, 5}, {2, 3}};
  problem.edges = {{0, 1, {0, 1, 1, 0}}};
  problem.rows = {{10, {{0, {12, 6}}, {1, {9, 7}}}}};
  const Solution solution = solve(problem, exact());
  BOOST_TEST(to_string(solution.kind) == std::string("infeasible"));
  BOOST_TEST(solution.excess == 3, boost::test_tools::tolerance(1e-12));
  problem.rows[0].limit += solution.excess;
  BOOST_TEST(to_string(solve(problem, exact()).kind) == std::string("optimal"));
}

BOOST_AUTO_TEST_CASE(problems_without_meaning_are_refused_with_their_numbers) {
  ChoiceProblem problem;
  problem.nodes = {{1, 2}, {}};
  BOOST_TEST(problem.verify().message() == "node 1 has no choices");
  problem.nodes[1] = {3};
  problem.edges = {{0, 1, {1, 2, 3}}};
  BOOST_TEST(problem.verify().message() == "edge 0 has 3 costs, not 2");
  problem.edges = {{0, 2, {}}};
  BOOST_TEST(problem.verify().message() == "edge 0 joins nodes 0 and 2 of 2");
  problem.edges.clear();
  problem.rows = {{kForbidden, {}}};
  BOOST_TEST(problem.verify().message() == "row 0 has the limit inf");
  problem.rows = {{1, {{1, {1, 2}}}}};
  BOOST_TEST(problem.verify().message() == "row 0 has 2 uses for the 1 choices of node 1");
}

BOOST_AUTO_TEST_CASE(nothing_to_choose_is_solved_at_once) {
  ChoiceProblem problem;
  problem.nodes = {{3}, {4}};
  problem.edges = {{0, 1, {5}}};
  problem.rows = {{2, {{0, {1}}, {1, {1}}}}};
  const Solution solution = solve(problem);
  BOOST_TEST(to_string(solution.kind) == std::string("optimal"));
  BOOST_TEST(solution.cost == 12);
  problem.rows[0].limit = 1;
  const Solution tight = solve(problem);
  BOOST_TEST(to_string(tight.kind) == std::string("infeasible"));
  BOOST_TEST(tight.excess == 1, boost::test_tools::tolerance(1e-9));
}
