#include "framework/cost/work_samples.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

#include "framework/cost/curve.hpp"

using namespace altiplano;

static auto within(double part) {
  return boost::test_tools::tolerance(part);
}

BOOST_AUTO_TEST_CASE(times_of_a_steady_rate_give_a_curve_of_that_rate) {
  std::vector<std::pair<double, double>> points;
  for (double size = 1e3; size < 1e9; size *= 1.5) points.emplace_back(size, size / 5e9);
  const Curve curve = fit_rates(points, std::vector<double>(points.size(), 1), 2);
  BOOST_TEST(curve.size() < points.size());
  for (double size = 1e3; size < 1e9; size *= 2.7) BOOST_TEST(seconds_by_rate(curve, size) == size / 5e9, within(1e-3));
}

BOOST_AUTO_TEST_CASE(whatever_was_measured_the_curves_are_legal) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> any(0, 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<WorkSample> samples;
    std::vector<std::pair<double, double>> times;
    for (int i = 0; i < 30; ++i) {
      const double size = std::pow(10, 1 + 8 * any(random)), seconds = std::pow(10, -9 + 8 * any(random));
      samples.push_back({"matmul", DType::kF32, size, size, 1 + i * 40, 1.0 + i, seconds});
      samples.push_back({i % 2 ? "copy" : "gelu", DType::kF32, size, 10 * size, 0, 1, seconds});
      times.emplace_back(size, seconds);
    }
    const Status device = verify_curves(fit_curves(samples));
    BOOST_REQUIRE_MESSAGE(device.is_ok(), device.to_string());
    const Status level = verify_curves({{}, {{CollectiveKind::kAllReduce, 2, fit_times(times)}}}, "level");
    BOOST_REQUIRE_MESSAGE(level.is_ok(), level.to_string());
  }
}

BOOST_AUTO_TEST_CASE(products_are_told_apart_by_smallest_dimension_and_ops_by_kind_and_what_bounds_them) {
  const std::vector<WorkSample> samples = {{"matmul", DType::kF32, 1e6, 1e4, 32, 1, 1e-3},
                                           {"matmul", DType::kF32, 1e9, 1e7, 512, 1, 1e-2},
                                           {"attention", DType::kF32, 1e8, 1e6, 0, 1, 1e-2},
                                           {"gelu", DType::kBF16, 1e6, 1e6, 0, 1, 1e-4},
                                           {"copy", DType::kF32, 0, 1e6, 0, 1, 1e-4}};
  const DeviceCurves curves = fit_curves(samples);
  BOOST_REQUIRE(curves.products.size() == 2u);
  BOOST_TEST(curves.products[0].smallest_dim == 32);
  BOOST_TEST(curves.products[0].points[0].value == 1e9, within(1e-3));
  BOOST_TEST(curves.products[1].smallest_dim == 512);
  BOOST_REQUIRE(curves.ops.size() == 2u);
  BOOST_TEST(curves.ops[0].kind == "attention");
  BOOST_TEST(curves.ops[0].by_flops);
  BOOST_TEST(curves.ops[0].points[0].value == 1e10, within(1e-3));
  BOOST_TEST(!curves.ops[1].by_flops);
  BOOST_TEST((curves.ops[1].type == DType::kBF16));
  BOOST_TEST(curves.memory[0].value == 1e10, within(1e-3));
}

BOOST_AUTO_TEST_CASE(slowdowns_compare_the_same_work_and_are_never_below_one) {
  std::vector<WorkSample> alone = {{"matmul", DType::kF32, 1e9, 1e7, 512, 2, 1e-2},
                                   {"gelu", DType::kF32, 1e6, 1e6, 0, 4, 1e-3}};
  std::vector<WorkSample> together = alone;
  together[0].seconds = 1.5e-2;
  together[1].seconds = 0.5e-3;
  const SlowdownFit fit = fit_slowdown(alone, together);
  BOOST_TEST(fit.compute == 1.5, within(1e-12));
  BOOST_TEST(fit.memory == 1.0);
}
