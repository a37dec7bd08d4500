#include "framework/runtime/checkpoint_space.hpp"

using namespace altiplano;

namespace {

SpaceForecast forecast_of(int64_t each, std::optional<Bytes> free, int64_t most, int64_t there = 0) {
  return {.directory = "runs/a/checkpoints", .each = Bytes(each), .free = free, .most = most, .there = there};
}

}  // namespace

BOOST_AUTO_TEST_CASE(checkpoints_that_all_fit_are_not_mentioned) {
  BOOST_TEST(!check_space(forecast_of(100, Bytes(400), 4))->has_value());
  BOOST_TEST(!check_space(forecast_of(100, Bytes(200), 4, 2))->has_value());  // two lie there already
  BOOST_TEST(!check_space(forecast_of(0, Bytes(0), 4))->has_value());
}

BOOST_AUTO_TEST_CASE(checkpoints_that_do_not_all_fit_are_told_with_the_numbers) {
  auto text = check_space(forecast_of(1 << 20, Bytes(3 << 20), 6, 1));
  BOOST_REQUIRE(text.is_ok());
  BOOST_TEST(text->value() ==
             "checkpoint.dir: runs/a/checkpoints: 5 more checkpoints of 1.0 MiB will lie there, but only 3.0 MiB are "
             "free, enough for 3; lower checkpoint.keep_last or keep_every, or free some space");
  BOOST_TEST(check_space(forecast_of(int64_t{1} << 40, Bytes(int64_t{1} << 41), int64_t{1} << 40))->has_value());
}

BOOST_AUTO_TEST_CASE(a_disk_that_takes_not_even_one_checkpoint_is_refused) {
  Status status = check_space(forecast_of(1 << 20, Bytes(1000), 1)).status();
  BOOST_TEST(exit_code_of(status.code()) == 2);
  BOOST_TEST(status.message().starts_with("checkpoint.dir: runs/a/checkpoints: one checkpoint takes 1.0 MiB, only "));
}

BOOST_AUTO_TEST_CASE(a_file_system_that_does_not_say_refuses_nothing) {
  BOOST_TEST(!free_bytes_at("/proc/checkpoints").has_value());
  BOOST_TEST(free_bytes_at("/tmp/a folder that is not there").has_value());
  BOOST_TEST(!check_space(forecast_of(1 << 20, std::nullopt, 4))->has_value());
}
