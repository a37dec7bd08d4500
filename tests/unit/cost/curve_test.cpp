#include "framework/cost/curve.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/support/about.hpp"

using namespace altiplano;
using namespace altiplano::test;

BOOST_AUTO_TEST_CASE(a_curve_is_its_points_and_lines_between_their_logarithms) {
  const Curve rates = {{1e6, 1e9}, {1e8, 1e10}};  // 1 ms and 10 ms
  BOOST_TEST(seconds_by_rate(rates, 1e6) == 1e-3, about(1e-9));
  BOOST_TEST(seconds_by_rate(rates, 1e8) == 1e-2, about(1e-9));
  BOOST_TEST(seconds_by_rate(rates, 1e7) == std::sqrt(1e-3 * 1e-2), about(1e-9));
  const Curve times = {{1024, 2e-6}, {1 << 20, 2e-4}};
  BOOST_TEST(seconds_by_time(times, 1024) == 2e-6, about(1e-9));
  BOOST_TEST(seconds_by_time(times, 32 << 10) == 2e-5, about(1e-9));
}

BOOST_AUTO_TEST_CASE(beyond_its_points_a_curve_goes_on_as_it_ended) {
  const Curve rates = {{1e6, 1e9}, {1e8, 1e10}};
  BOOST_TEST(seconds_by_rate(rates, 0) == 0.0);
  BOOST_TEST(seconds_by_rate(rates, 1e3) == 1e-6, about(1e-9));
  BOOST_TEST(seconds_by_rate(rates, 1e11) == 10.0, about(1e-9));
  const Curve times = {{1024, 2e-6}, {1 << 20, 2e-4}};
  BOOST_TEST(seconds_by_time(times, 0) == 2e-6, about(1e-9));
  BOOST_TEST(seconds_by_time(times, 4 << 20) == 8e-4, about(1e-9));
  BOOST_TEST(seconds_by_time({{8, 1e-6}}, 16) == 2e-6, about(1e-9));
}

BOOST_AUTO_TEST_CASE(more_never_takes_less_by_any_curve_that_is_legal) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> step(0, 3);
  for (int round = 0; round < 200; ++round) {
    Curve rates, times;
    double size = 100, seconds = 1e-6;
    for (int i = 0; i < 6; ++i) {
      size *= 1.01 + step(random);
      seconds *= 1 + (round % 2 ? step(random) : 0);
      rates.push_back({size, size / seconds});
      times.push_back({size, seconds});
    }
    DeviceCurves legal;
    legal.memory = rates;
    BOOST_REQUIRE(verify_curves(legal).is_ok());
    double by_rate = 0, by_time = 0;
    for (double at = 1; at < 1e7; at *= 1.3) {
      BOOST_REQUIRE(seconds_by_rate(rates, at) >= by_rate * (1 - 1e-9));
      BOOST_REQUIRE(seconds_by_time(times, at) >= by_time * (1 - 1e-9));
      by_rate = seconds_by_rate(rates, at);
      by_time = seconds_by_time(times, at);
    }
  }
}

BOOST_AUTO_TEST_CASE(products_lie_between_the_curves_of_their_smallest_dimension) {
  const std::vector<ProductCurve> curves = {
      {DType::kBF16, 256, {{1e9, 4e12}}}, {DType::kBF16, 64, {{1e9, 1e12}}}, {DType::kF32, 0, {{1e9, 1e12}}}};
  const auto of = [&](DType type, int64_t dim) { return seconds_of_product(curves, type, 1e9, dim).value_or(-1); };
  BOOST_TEST(of(DType::kBF16, 64) == 1e-3, about(1e-9));
  BOOST_TEST(of(DType::kBF16, 8) == 1e-3, about(1e-9));
  BOOST_TEST(of(DType::kBF16, 128) == 5e-4, about(1e-9));
  BOOST_TEST(of(DType::kBF16, 256) == 2.5e-4, about(1e-9));
  BOOST_TEST(of(DType::kBF16, 4096) == 2.5e-4, about(1e-9));
  BOOST_TEST(of(DType::kF32, 100) == 1e-3, about(1e-9));
  BOOST_TEST(of(DType::kF64, 100) == -1.0);
}

BOOST_AUTO_TEST_CASE(devices_at_work_slow_each_other_down_on_lines_from_one) {
  const Curve factors = {{2, 1.5}, {4, 3.5}};
  BOOST_TEST(slowdown({}, 7) == 1.0);
  BOOST_TEST(slowdown(factors, 1) == 1.0);
  BOOST_TEST(slowdown(factors, 1.5) == 1.25);
  BOOST_TEST(slowdown(factors, 3) == 2.5);
  BOOST_TEST(slowdown(factors, 8) == 7.5);
}
