// What every rank decides at a step's boundary, and the rates of a run.
#include "framework/runtime/step_decision.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

using namespace altiplano;

namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
}

BOOST_AUTO_TEST_CASE(the_gradient_is_of_the_mean_over_valid_tokens) {
  StepDecision decision = decide_step({80, 40, 1600}, 0);
  BOOST_TEST(decision.applies);
  BOOST_TEST(decision.gradient_norm == 1.0);  // sqrt(1600) / 40
  BOOST_TEST(decision.gradient_scale == 1.0 / 40);
}

BOOST_AUTO_TEST_CASE(a_norm_above_the_limit_is_clipped_to_it_and_one_below_is_not) {
  StepDecision above = decide_step({80, 10, 1600}, 0.5);
  BOOST_TEST(above.gradient_norm == 4.0);
  BOOST_TEST(above.gradient_scale * 10 * above.gradient_norm == 0.5);
  StepDecision below = decide_step({80, 10, 1600}, 5);
  BOOST_TEST(below.gradient_scale == 0.1);
}

BOOST_AUTO_TEST_CASE(a_step_that_is_not_finite_is_skipped) {
  for (double bad : {kNan, kInfinity, -kInfinity}) {
    BOOST_TEST(!decide_step({bad, 10, 1}, 1).applies);
    BOOST_TEST(!decide_step({1, 10, bad}, 1).applies);
  }
}

// Field case P16: no 0/0.
BOOST_AUTO_TEST_CASE(a_step_without_a_valid_token_is_skipped_without_a_nan) {
  StepDecision decision = decide_step({0, 0, 0}, 1);
  BOOST_TEST(!decision.applies);
  BOOST_TEST(decision.gradient_norm == 0.0);
  BOOST_TEST((StepTotals{0, 0, 0}.loss()) == 0.0);
}

BOOST_AUTO_TEST_CASE(a_gradient_of_zero_is_applied) {
  StepDecision decision = decide_step({1, 10, 0}, 1);
  BOOST_TEST(decision.applies);
  BOOST_TEST(decision.gradient_scale == 0.1);
}

BOOST_AUTO_TEST_CASE(a_constant_rate_warms_up_and_stays) {
  LearningRate rate{"constant", 0.4, 0.1, 4, 0};
  for (auto [step, wanted] : {std::pair{1, 0.1}, {2, 0.2}, {4, 0.4}, {5, 0.4}, {1000, 0.4}})
    BOOST_TEST(learning_rate_at(rate, step) == wanted);
}

BOOST_AUTO_TEST_CASE(a_linear_rate_falls_to_its_minimum_and_stays_there) {
  LearningRate rate{"linear", 1.0, 0.2, 2, 10};
  BOOST_TEST(learning_rate_at(rate, 2) == 1.0);
  BOOST_TEST(learning_rate_at(rate, 6) == 0.6, boost::test_tools::tolerance(1e-15));
  BOOST_TEST(learning_rate_at(rate, 10) == 0.2, boost::test_tools::tolerance(1e-15));
  BOOST_TEST(learning_rate_at(rate, 11) == 0.2, boost::test_tools::tolerance(1e-15));
}

BOOST_AUTO_TEST_CASE(a_cosine_rate_is_half_way_in_the_middle) {
  LearningRate rate{"cosine", 1.0, 0.0, 0, 100};
  BOOST_TEST(learning_rate_at(rate, 50) == 0.5, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(learning_rate_at(rate, 100) == 0.0);
  for (int step = 1; step < 100; ++step) BOOST_TEST(learning_rate_at(rate, step) >= learning_rate_at(rate, step + 1));
}

BOOST_AUTO_TEST_CASE(a_run_without_warm_up_or_decay_does_not_divide_by_zero) {
  for (const char* shape : {"constant", "linear", "cosine"})
    for (int step : {1, 2, 100}) BOOST_TEST(std::isfinite(learning_rate_at({shape, 1.0, 0.0, 0, 0}, step)));
}
