#include "framework/simulate/jitter.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "framework/simulate/plan_simulation.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

using namespace altiplano;
using namespace altiplano::test;

BOOST_AUTO_TEST_CASE(without_deviation_nothing_changes) {
  BOOST_TEST(Jitter{}.factor(RankId(3), 5, 7) == 1);
}

BOOST_AUTO_TEST_CASE(factors_have_the_mean_and_deviation_they_are_said_to_have) {
  const Jitter jitter{0.1, 3};
  double sum = 0, squares = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const double factor = jitter.factor(RankId(i % 7), 1, static_cast<size_t>(i));
    sum += factor;
    squares += std::log(factor) * std::log(factor);
  }
  BOOST_TEST(sum / kDraws == 1, boost::test_tools::tolerance(0.01));
  BOOST_TEST(std::sqrt(squares / kDraws) == 0.1, boost::test_tools::tolerance(0.03));
}

BOOST_AUTO_TEST_CASE(factors_are_the_same_for_the_same_rank_action_and_seed_alone) {
  const Jitter jitter{0.1, 3};
  const double factor = jitter.factor(RankId(1), 1, 4);
  BOOST_TEST(jitter.factor(RankId(1), 1, 4) == factor);
  BOOST_TEST(jitter.factor(RankId(2), 1, 4) != factor);
  BOOST_TEST(jitter.factor(RankId(1), 1, 5) != factor);
  BOOST_TEST((Jitter{0.1, 4}.factor(RankId(1), 1, 4)) != factor);
}

BOOST_AUTO_TEST_CASE(a_program_that_stands_for_several_ranks_is_as_slow_as_the_slowest) {
  const Jitter jitter{0.1, 3};
  double slowest = 0;
  for (int rank = 2; rank < 6; ++rank) slowest = std::max(slowest, jitter.factor(RankId(rank), 1, 9));
  BOOST_TEST(jitter.factor(RankId(2), 4, 9) == slowest);
}

// Two stages wait for each other, so that what one is slow at the other cannot make good.
BOOST_AUTO_TEST_CASE(steps_of_ranks_that_wait_for_each_other_get_longer_with_jitter) {
  GptShape shape;
  shape.layers = 4, shape.batch = 16, shape.vocabulary = 32;
  const TrainingGraph graph = make_gpt_training(shape, DType::kF32);
  DegreePlanOptions options;
  options.degrees = {2, 1, 2};
  options.microbatch = 1;
  const Plan plan = make_plan(graph, options);
  const Cluster cluster = test_cluster(4);
  const auto lowered = lower_for_simulation(graph, plan, make_timetable(plan), {}, /*each_rank=*/true);
  BOOST_REQUIRE(lowered.is_ok());
  BOOST_TEST(lowered->programs.size() == 4u);
  const auto step = [&](const Jitter& jitter) {
    return simulate_programs(lowered->programs, lowered->alike, cluster, jitter)->step.value;
  };
  double mean = 0;
  for (uint64_t seed = 0; seed < 16; ++seed) mean += step({0.2, seed}) / 16;
  BOOST_TEST(mean > step({}));
  BOOST_TEST(step({0.2, 1}) == step({0.2, 1}));
}
