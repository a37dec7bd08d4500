#include "framework/cost/compute_cost.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

static DeviceModel device() {
  return {"d", Bytes(1 << 30), 100e9, {{DType::kF32, 10e12}, {DType::kBF16, 40e12}}, 0.5, 2e-6, "test"};
}
static double cost(double flops, int64_t bytes, DType dtype) {
  return compute_cost(Flops(flops), Bytes(bytes), dtype, device()).value;
}
static auto about() {
  return boost::test_tools::tolerance(1e-12);
}

BOOST_AUTO_TEST_CASE(an_op_costs_the_slower_of_arithmetic_and_traffic_plus_its_overhead) {
  BOOST_TEST(cost(5e9, 0, DType::kF32) == 1002e-6, about());            // 5e9 / (10e12 * 0.5)
  BOOST_TEST(cost(0, 100'000'000, DType::kF32) == 1002e-6, about());    // 1e8 / 1e11
  BOOST_TEST(cost(5e9, 200'000'000, DType::kF32) == 2002e-6, about());  // traffic wins
  BOOST_TEST(cost(0, 0, DType::kF32) == 0.0);
}

BOOST_AUTO_TEST_CASE(types_without_a_figure_run_as_the_next_wider_one) {
  BOOST_TEST(reached_flops(device(), DType::kBF16) == 20e12);
  BOOST_TEST(reached_flops(device(), DType::kF64) == 2.5e12);
  BOOST_TEST(reached_flops(device(), DType::kI32) == 5e12);
  DeviceModel plain = device();
  plain.peak_flops.erase(DType::kBF16);
  BOOST_TEST(reached_flops(plain, DType::kBF16) == 5e12);
}

BOOST_AUTO_TEST_CASE(more_work_never_costs_less) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16})
    for (double flops = 1; flops < 1e15; flops *= 7)
      for (int64_t bytes = 1; bytes < (int64_t{1} << 40); bytes *= 11) {
        BOOST_REQUIRE(cost(flops * 2, bytes, dtype) >= cost(flops, bytes, dtype));
        BOOST_REQUIRE(cost(flops, bytes * 2, dtype) >= cost(flops, bytes, dtype));
      }
}
