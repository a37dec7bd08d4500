// The schedules of the tree in particular: their orders, what they hold in flight, how their refusals read.
#include <boost/test/unit_test.hpp>

#include "framework/plugin/registry.hpp"

using namespace altiplano;

namespace {

const Schedule& schedule_named(const std::string& name) {
  auto schedule = PluginRegistry::instance().schedule(name);
  BOOST_REQUIRE_MESSAGE(schedule.is_ok(), schedule.status().to_string());
  return **schedule;
}

ScheduleRequest request_of(int stages, int microbatches, int64_t limit = 0) {
  ScheduleRequest request;
  request.num_stages = stages;
  request.num_microbatches = microbatches;
  request.max_microbatches_in_flight = limit;
  return request;
}

template <typename Body>
void for_every_size(Body body) {
  for (int stages = 1; stages <= 16; ++stages) {
    for (int microbatches = 1; microbatches <= 64; ++microbatches) body(stages, microbatches);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(gpipe_holds_every_microbatch_and_1f1b_as_many_as_stages_follow) {
  for_every_size([](int stages, int microbatches) {
    auto gpipe = max_in_flight(*schedule_named("gpipe").build(request_of(stages, microbatches)));
    auto one_f_one_b = max_in_flight(*schedule_named("1f1b").build(request_of(stages, microbatches)));
    for (int p = 0; p < stages; ++p) {
      BOOST_REQUIRE_EQUAL(gpipe[static_cast<size_t>(p)], microbatches);
      BOOST_REQUIRE_EQUAL(one_f_one_b[static_cast<size_t>(p)], std::min(microbatches, stages - p));
    }
  });
}

BOOST_AUTO_TEST_CASE(the_orders_are_those_of_the_papers) {
  BOOST_TEST(schedule_named("gpipe").build(request_of(2, 3))->to_string() ==
             "w0: F0 F1 F2 B0 B1 B2\nw1: F0 F1 F2 B0 B1 B2\n");
  BOOST_TEST(schedule_named("1f1b").build(request_of(3, 4))->to_string() ==
             "w0: F0 F1 F2 B0 F3 B1 B2 B3\nw1: F0 F1 B0 F2 B1 F3 B2 B3\nw2: F0 B0 F1 B1 F2 B2 F3 B3\n");
  BOOST_TEST(schedule_named("1f1b").build(request_of(3, 1))->to_string() == "w0: F0 B0\nw1: F0 B0\nw2: F0 B0\n");
}

BOOST_AUTO_TEST_CASE(refusals_read_as_written_in_the_readmes) {
  BOOST_TEST(schedule_named("gpipe").build(request_of(4, 8, 4)).status().message() ==
             "schedule gpipe: at most 4 microbatches in flight but gpipe keeps all 8 of a step; nearest legal values: "
             "a limit of 8, or 4 "
             "microbatches, or the schedule 1f1b");
  ScheduleRequest request = request_of(4, 8);
  request.chunks_per_worker = 2;
  BOOST_TEST(schedule_named("1f1b").build(request).status().message() ==
             "schedule 1f1b: 2 chunks per worker; it places one stage on each worker; nearest legal value: 1");
}
