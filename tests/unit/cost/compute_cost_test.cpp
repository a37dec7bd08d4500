#include "framework/cost/compute_cost.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/about.hpp"

using namespace altiplano;
using namespace altiplano::test;

static DeviceModel device() {
  return {"d", Bytes(1 << 30), 100e9, {{DType::kF32, 10e12}, {DType::kBF16, 40e12}}, 0.5, 2e-6, "test"};
}
static OpWork work(const char* kind, double flops, int64_t bytes, DType dtype, int64_t smallest_dim = 0) {
  return {kind, Flops(flops), Bytes(bytes), dtype, smallest_dim};
}
static double cost(double flops, int64_t bytes, DType dtype) {
  return compute_cost(work("x", flops, bytes, dtype), device()).alone();
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

static DeviceModel with_curves() {
  DeviceCurves curves;
  curves.products = {{DType::kF32, 0, {{1e6, 1e12}, {1e9, 4e12}}}};
  curves.memory = {{1e3, 50e9}, {1e6, 100e9}};
  curves.ops = {{"attention", DType::kF32, true, {{1e6, 2e12}}}, {"gelu", DType::kF32, false, {{1e3, 1e9}}}};
  curves.sharing = {2, {{2, 1.5}}, {{2, 2}}};
  DeviceModel device = ::device();
  device.curves = std::make_shared<const DeviceCurves>(curves);
  return device;
}

BOOST_AUTO_TEST_CASE(products_and_traffic_follow_their_curves) {
  const DeviceModel device = with_curves();
  const auto alone = [&](const OpWork& w) { return compute_cost(w, device).alone() - device.op_overhead; };
  BOOST_TEST(alone(work("matmul", 1e6, 1, DType::kF32, 64)) == 1e-6, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(alone(work("matmul", 4e9, 1, DType::kF32, 64)) == 1e-3, boost::test_tools::tolerance(1e-9));
  // What is no product reaches the device's general rate however small it is.
  BOOST_TEST(alone(work("x", 1e6, 1, DType::kF32)) == 1e6 / 5e12, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(alone(work("x", 0, 1000, DType::kF32)) == 1000 / 50e9, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(alone(work("x", 0, 10'000'000, DType::kF32)) == 1e-4, boost::test_tools::tolerance(1e-9));
  // bf16 has a peak of its own and no curve.
  BOOST_TEST(alone(work("matmul", 2e9, 1, DType::kBF16, 64)) == 1e-4, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_kind_with_a_curve_of_its_own_follows_that_one_alone) {
  const DeviceModel device = with_curves();
  const auto cost = compute_cost(work("attention", 2e6, int64_t{1} << 40, DType::kF32), device);
  BOOST_TEST(cost.compute == 3e-6, about());
  BOOST_TEST(cost.memory == 0.0);
  const auto bytes = compute_cost(work("gelu", 1e15, 1000, DType::kF32), device);
  BOOST_TEST(bytes.compute == 2e-6, about());
  BOOST_TEST(bytes.memory == 1e-6, about());
  BOOST_TEST(compute_cost(work("gelu", 0, 1'000'000, DType::kBF16), device).memory == 1e-5, about());
  BOOST_TEST(copy_cost(Bytes(1'000'000), device).memory == 1e-5, about());
}

BOOST_AUTO_TEST_CASE(devices_of_a_node_slow_each_other_down_and_take_turns_when_they_are_more_than_processors) {
  const DeviceModel device = with_curves();
  const WorkTime work{2, 1};
  BOOST_TEST(time_among(work, device, 1).value == 3.0);
  BOOST_TEST(time_among(work, device, 2).value == 5.0);
  BOOST_TEST(time_among(work, device, 4).value == 10.0);
  BOOST_TEST(time_among(work, ::device(), 4).value == 3.0);
}

BOOST_AUTO_TEST_CASE(products_whose_dims_do_not_fit_the_device_take_longer) {
  DeviceCurves curves;
  curves.products = {{DType::kF32, 0, {{1e6, 1e12}}}};
  curves.alignment = {8, 2.5};
  DeviceModel device = ::device();
  device.curves = std::make_shared<const DeviceCurves>(curves);
  OpWork product = work("matmul", 1e6, 1, DType::kF32, 64);
  const auto alone = [&] { return compute_cost(product, device).alone() - device.op_overhead; };
  for (const auto& [alignment, seconds] : {std::pair(16, 1e-6), std::pair(8, 1e-6), std::pair(4, 2.5e-6)}) {
    product.alignment = alignment;
    BOOST_TEST(alone() == seconds, boost::test_tools::tolerance(1e-9));
  }
  OpWork other = work("x", 5e12, 1, DType::kF32);
  BOOST_TEST(compute_cost(other, device).alone() - device.op_overhead == 1, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(what_stands_between_products_is_written_and_read_where_a_curve_says_so) {
  DeviceCurves curves;
  curves.ops = {{"attention", DType::kF32, true, {{1e6, 1e12}}, 4}};
  DeviceModel device = ::device();
  device.curves = std::make_shared<const DeviceCurves>(curves);
  OpWork attention = work("attention", 1e6, 1, DType::kF32);
  attention.inner_bytes = Bytes(static_cast<int64_t>(device.memory_bandwidth / 100));
  BOOST_TEST(compute_cost(attention, device).memory == 0.04, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(compute_cost(attention, ::device()).memory == 0.0);
}

BOOST_AUTO_TEST_CASE(an_op_smaller_than_what_its_host_takes_for_it_takes_that_long) {
  DeviceModel device = ::device();
  device.dispatch = 1;
  const WorkTime small = compute_cost(work("x", 0, 1000, DType::kF32), device);
  BOOST_TEST(small.dispatch == 1.0);
  BOOST_TEST(time_among(small, device, 1).value == 1.0);
  BOOST_TEST(time_among(WorkTime{2, 1, 1}, device, 1).value == 3.0);
}
