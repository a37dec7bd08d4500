#include "framework/simulate/shared_time.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

using namespace altiplano;

static DeviceModel device_with(Sharing sharing) {
  DeviceModel device;
  device.peak_flops = {{DType::kF32, 1e9}};
  DeviceCurves curves;
  curves.sharing = std::move(sharing);
  device.curves = std::make_shared<const DeviceCurves>(curves);
  return device;
}

static auto about() {
  return boost::test_tools::tolerance(1e-9);
}

BOOST_AUTO_TEST_CASE(devices_that_work_beside_each_other_take_longer_while_they_do) {
  const DeviceModel device = device_with({0, {{2, 1.5}}, {{2, 2}}});
  BOOST_TEST(SharedTime::is_needed(device));
  BOOST_TEST(!SharedTime::is_needed(device_with({})));
  SharedTime time(device);
  time.add(0, 1, 0, 4, {4, 0});
  time.add(0, 1, 2, 6, {4, 0});
  time.close();
  BOOST_TEST(time.at(0) == 0.0);
  BOOST_TEST(time.at(2) == 2.0, about());
  BOOST_TEST(time.at(4) == 5.0, about());
  BOOST_TEST(time.at(6) == 7.0, about());
  BOOST_TEST(time.at(10) == 11.0, about());
}

BOOST_AUTO_TEST_CASE(more_devices_than_processors_take_turns) {
  SharedTime time(device_with({2, {}, {}}));
  for (int device = 0; device < 4; ++device) time.add(0, 1, 0, 1, {1, 0});
  time.add(1, 3, 0, 1, {1, 0});
  time.close();
  BOOST_TEST(time.at(1) == 2.0, about());
}

BOOST_AUTO_TEST_CASE(what_a_stretch_is_made_of_decides_how_much_longer_it_takes) {
  SharedTime time(device_with({0, {{2, 1}}, {{2, 3}}}));
  time.add(0, 2, 0, 4, {1, 1}, 2);  // a quarter of it is memory
  time.close();
  BOOST_TEST(time.at(4) == 6.0, about());
}

BOOST_AUTO_TEST_CASE(stretched_time_keeps_the_order_of_events_and_is_never_shorter) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> any(0, 1);
  for (int round = 0; round < 50; ++round) {
    SharedTime time(device_with({1 + round % 4, {{2, 1.2}}, {{2, 1.7}, {4, 2}}}));
    for (int i = 0; i < 40; ++i) {
      const double begin = 10 * any(random), length = any(random);
      time.add(i % 3, 1 + i % 2, begin, begin + length, {any(random), any(random)}, any(random));
    }
    time.close();
    double before = 0;
    for (double at = 0; at < 12; at += 0.05) {
      const double stretched = time.at(at);
      BOOST_REQUIRE(stretched >= at * (1 - 1e-9));
      BOOST_REQUIRE(stretched >= before);
      before = stretched;
    }
  }
}
