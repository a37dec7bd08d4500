// Every schedule plugin on the search path: what each one owes (verify_timetable), determinism, and refusals that say
// the rule.
#include <boost/test/unit_test.hpp>

#include "framework/plugin/registry.hpp"

using namespace altiplano;

namespace {

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& info : PluginRegistry::instance().list()) {
    if (info.kind == Schedule::kKind && info.refusal.empty()) names.push_back(info.name);
  }
  return names;
}

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

/// The timetable, or nothing after checking that the refusal tells a way out.
std::optional<Timetable> build_checked(const std::string& name, const ScheduleRequest& request) {
  auto table = schedule_named(name).build(request);
  if (!table.is_ok()) {
    BOOST_TEST(table.status().message().find("nearest legal value") != std::string::npos,
               name << ": " << table.status().message());
    return std::nullopt;
  }
  Status status = verify_timetable(*table);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), name << ": " << status.to_string() << "\n" << table->to_string());
  BOOST_REQUIRE(table->num_stages == request.num_stages);
  BOOST_REQUIRE(table->num_microbatches == request.num_microbatches);
  return *table;
}

template <typename Body>
void for_every_size(Body body) {
  for (int stages = 1; stages <= 16; ++stages) {
    for (int microbatches = 1; microbatches <= 64; ++microbatches) body(stages, microbatches);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_schedules_of_the_tree_are_found) {
  auto names = schedule_names();
  for (const char* name : {"schedule/gpipe", "schedule/1f1b"}) {
    BOOST_TEST((std::find(names.begin(), names.end(), name) != names.end()), name);
  }
}

BOOST_AUTO_TEST_CASE(every_schedule_is_right_for_every_size_or_refuses_it_with_the_rule) {
  for (const auto& name : schedule_names()) {
    int num_built = 0;
    for_every_size([&](int stages, int microbatches) {
      num_built += build_checked(name, request_of(stages, microbatches)).has_value();
    });
    BOOST_TEST_MESSAGE(name << ": " << num_built << " of 1024 sizes built");
    BOOST_TEST(num_built > 0, name);
  }
}

BOOST_AUTO_TEST_CASE(equal_requests_give_equal_timetables_that_survive_printing) {
  for (const auto& name : schedule_names()) {
    for_every_size([&](int stages, int microbatches) {
      auto first = schedule_named(name).build(request_of(stages, microbatches));
      if (!first.is_ok()) return;
      auto second = schedule_named(name).build(request_of(stages, microbatches));
      std::string text = first->to_string();
      BOOST_REQUIRE(second.is_ok() && second->to_string() == text);
      auto parsed = Timetable::parse(text);
      BOOST_REQUIRE(parsed.is_ok() && parsed->to_string() == text);
    });
  }
}

BOOST_AUTO_TEST_CASE(an_in_flight_limit_is_kept_or_refused) {
  for (const auto& name : schedule_names()) {
    for (int stages : {1, 2, 3, 4, 8, 16}) {
      for (int microbatches : {1, 2, 3, 7, 16, 64}) {
        for (int64_t limit = 1; limit <= 20; ++limit) {
          auto table = build_checked(name, request_of(stages, microbatches, limit));
          if (!table) continue;
          for (int most : max_in_flight(*table))
            BOOST_REQUIRE_MESSAGE(most <= limit, name << ": " << most << " in flight, limit " << limit);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(requests_that_make_no_sense_are_refused_by_every_schedule) {
  for (const auto& name : schedule_names()) {
    BOOST_TEST(!build_checked(name, request_of(0, 4)).has_value());
    BOOST_TEST(!build_checked(name, request_of(-1, 4)).has_value());
    BOOST_TEST(!build_checked(name, request_of(4, 0)).has_value());
    BOOST_TEST(!build_checked(name, request_of(4, 4, -1)).has_value());
    ScheduleRequest request = request_of(4, 8);
    request.chunks_per_worker = 0;
    BOOST_TEST(!build_checked(name, request).has_value());
  }
}

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
