#include "framework/runtime/time_budget.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/config/job_fixture.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

int64_t end_of(const std::string& limit, int64_t job_end) {
  auto job = load(kSmallest + (limit.empty() ? "" : "train.time_limit: " + limit + "\n"));
  BOOST_REQUIRE_MESSAGE(job.is_ok(), job.status().to_string());
  return run_end(job->options, job_end, 1000).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_end_is_the_limit_or_the_jobs_end_whichever_is_sooner) {
  BOOST_TEST(end_of("", 0) == 0);
  BOOST_TEST(end_of("", 1600) == 1600);
  BOOST_TEST(end_of("auto", 1600) == 1600);
  BOOST_TEST(end_of("none", 1600) == 0);
  BOOST_TEST(end_of("1", 0) == 1060);
  BOOST_TEST(end_of("0:30", 1600) == 1030);
  BOOST_TEST(end_of("1:00:00", 1600) == 1600);
  BOOST_TEST(end_of("", 900) == 0);  // past
  BOOST_TEST(end_of("1", 900) == 1060);
}

BOOST_AUTO_TEST_CASE(a_run_ends_before_its_time_with_its_save_and_trains_as_long_as_it_may) {
  // Steps of 5 s, every third one validated for 2 s, a save of 3 s at the end: at most 60 s.
  TimeBudget budget(1060, Bytes(100'000'000));
  double now = 1000;
  int steps = 0;
  for (bool is_last = false; !is_last; ++steps) {
    is_last = budget.is_last_step(now);
    now += 5;
    budget.note_step(Seconds(5));
    if (steps % 3 == 2) {
      now += 2;
      budget.note_validation(Seconds(2));
    }
    if (steps == 3) {
      now += 3;
      budget.note_save(Seconds(3));
    }
  }
  now += 3;
  BOOST_TEST(now <= 1060);
  BOOST_TEST(now > 1060 - 2 * (5 + 2 + 3));
  BOOST_TEST(steps >= 8);
}

BOOST_AUTO_TEST_CASE(without_an_end_no_step_is_the_last_and_after_it_every_one_is) {
  TimeBudget endless;
  endless.note_step(Seconds(1e9));
  BOOST_TEST(!endless.is_last_step(4e9));
  const TimeBudget late(1000, Bytes(0));
  BOOST_TEST(!late.is_last_step(998));
  BOOST_TEST(late.is_last_step(1001));
  // The first save may be as slow as its size makes it: 3 GB.
  BOOST_TEST(TimeBudget(1050, Bytes(3'000'000'000)).is_last_step(1000));
  TimeBudget timed(1050, Bytes(3'000'000'000));
  timed.note_save(Seconds(4));
  BOOST_TEST(!timed.is_last_step(1000));
}
