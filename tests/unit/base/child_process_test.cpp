#include "framework/base/child_process.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <thread>

using namespace altiplano;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(child_process)

BOOST_AUTO_TEST_CASE(a_program_runs_to_its_end_with_what_it_prints_and_its_exit_code) {
  const auto outcome = run_program({"sh", "-c", "echo out; echo $WORD >&2; exit 3"}, 60s, {"WORD=err"});
  BOOST_REQUIRE_MESSAGE(outcome.is_ok(), outcome.status().to_string());
  BOOST_TEST(outcome->exit_code == 3);
  BOOST_TEST(outcome->output == "out\n");
  BOOST_TEST(outcome->errors == "err\n");
}

BOOST_AUTO_TEST_CASE(much_output_on_both_sides_blocks_nobody) {
  const auto outcome = run_program({"sh", "-c", "seq 100000; seq 100000 >&2"}, 60s);
  BOOST_REQUIRE_MESSAGE(outcome.is_ok(), outcome.status().to_string());
  BOOST_TEST(outcome->output.size() == 588895u);
  BOOST_TEST(outcome->errors.size() == 588895u);
}

BOOST_AUTO_TEST_CASE(a_program_that_does_not_answer_is_named_and_killed_with_its_children) {
  const auto outcome = run_program({"sh", "-c", "sleep 1000 & wait"}, 200ms);
  BOOST_TEST((outcome.status().code() == StatusCode::kPeerStuck));
  BOOST_TEST(outcome.status().message() == "sh did not answer within 0.2 s");
}

BOOST_AUTO_TEST_CASE(a_program_that_is_not_there_is_named) {
  const auto outcome = run_program({"no-such-squeue"}, 60s);
  BOOST_TEST((outcome.status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST(outcome.status().message() == "no-such-squeue: cannot be started: No such file or directory");
}

BOOST_AUTO_TEST_CASE(a_child_is_signalled_alone_or_with_its_group_and_its_end_is_seen_without_waiting) {
  auto child = ChildProcess::start({.command = {"sleep", "1000"}});
  BOOST_REQUIRE_MESSAGE(child.is_ok(), child.status().to_string());
  BOOST_TEST(!child->exit_code().has_value());
  child->signal_group(SIGTERM);
  for (int i = 0; i < 6000 && !child->exit_code(); ++i) std::this_thread::sleep_for(10ms);
  BOOST_TEST(child->exit_code().value_or(0) == 128 + SIGTERM);
}

BOOST_AUTO_TEST_CASE(a_child_has_no_signal_blocked_though_this_thread_has) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const auto outcome = run_program({"sh", "-c", "kill -USR1 $$; echo lives"}, 60s);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  BOOST_REQUIRE_MESSAGE(outcome.is_ok(), outcome.status().to_string());
  BOOST_TEST(outcome->exit_code == 128 + SIGUSR1);
}

BOOST_AUTO_TEST_SUITE_END()
