#include "framework/base/status.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

static Result<int> half(int number) {
  if (number % 2 != 0) return invalid_argument("{} is odd; nearest: {}, {}", number, number - 1, number + 1);
  return number / 2;
}
static Result<int> quarter(int number) {
  ALTIPLANO_ASSIGN(int h, half(number));
  ALTIPLANO_ASSIGN(int q, half(h));
  return q;
}
static Status check_quarter(int number) {
  ALTIPLANO_RETURN_IF_ERROR(quarter(number).status());
  return Status::ok();
}

BOOST_AUTO_TEST_CASE(a_result_holds_a_value_or_the_status_that_says_why_not) {
  BOOST_TEST(*half(4) == 2);
  Result<int> bad = half(5);
  BOOST_TEST(!bad.is_ok());
  BOOST_TEST((bad.status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST(bad.status().message() == "5 is odd; nearest: 4, 6");
}

BOOST_AUTO_TEST_CASE(the_first_failure_leaves_the_function_through_the_macros) {
  BOOST_TEST(*quarter(8) == 2);
  BOOST_TEST(quarter(6).status().message() == "3 is odd; nearest: 2, 4");
  BOOST_TEST(check_quarter(8).is_ok());
  BOOST_TEST(check_quarter(5).message() == "5 is odd; nearest: 4, 6");
}

BOOST_AUTO_TEST_CASE(context_is_printed_innermost_first_and_ignored_on_success) {
  Status status = runtime_failure("disk full");
  status.with_context("while saving shard 3").with_context("while at step 400");
  BOOST_TEST(status.to_string() == "disk full (while saving shard 3; while at step 400)");
  Status fine;
  fine.with_context("while nothing");
  BOOST_TEST(fine.to_string() == "ok");
  BOOST_TEST(static_cast<bool>(fine));
}

BOOST_AUTO_TEST_CASE(every_status_code_has_the_documented_exit_code) {
  BOOST_TEST(exit_code_of(StatusCode::kOk) == 0);
  BOOST_TEST(exit_code_of(StatusCode::kRuntimeFailure) == 1);
  BOOST_TEST(exit_code_of(StatusCode::kInvalidArgument) == 2);
  BOOST_TEST(exit_code_of(StatusCode::kInfeasible) == 3);
  BOOST_TEST(exit_code_of(StatusCode::kNoCheckpoint) == 4);
  BOOST_TEST(exit_code_of(StatusCode::kDiverged) == 5);
  BOOST_TEST(exit_code_of(StatusCode::kStoppedEarly) == 75);
  BOOST_TEST(exit_code_of(StatusCode::kPeerStuck) == 124);
  BOOST_TEST(exit_code_of(StatusCode::kCancelled) == 1);
  BOOST_TEST(to_string(StatusCode::kInfeasible) == std::string("no feasible plan"));
}
