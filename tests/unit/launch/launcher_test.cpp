#include "framework/launch/launcher.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <thread>

#include "framework/launch/rank_environment.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

using Clock = std::chrono::steady_clock;

struct Launched {
  LaunchOutcome outcome;
  std::string out, err;
  double seconds = 0;
};

/// Runs `script` by /bin/sh as every rank.
Launched launch(const TemporaryDirectory& folder, int ranks, const std::string& script, bool pin = false,
                int cpus_per_rank = 0, const std::string& plan = "") {
  LaunchRequest request;
  request.ranks = ranks;
  request.command = {"/bin/sh", "-c", script};
  request.log_directory = folder / "logs";
  request.kill_grace = std::chrono::milliseconds(500);
  request.pin_cpus = pin;
  request.cpus_per_rank = cpus_per_rank;
  request.plan = plan;
  request.console_out = open((folder / "out").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  request.console_err = open((folder / "err").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  const auto begin = Clock::now();
  auto outcome = launch_ranks(request);
  BOOST_REQUIRE_MESSAGE(outcome.is_ok(), outcome.status().to_string());
  close(request.console_out);
  close(request.console_err);
  return {*outcome, read_bytes(folder / "out"), read_bytes(folder / "err"),
          std::chrono::duration<double>(Clock::now() - begin).count()};
}

/// A rank's log without the line that names the job.
std::string log_of(const TemporaryDirectory& folder, int rank) {
  const std::string text = read_bytes(folder / fmt::format("logs/rank-{}.log", rank));
  return text.starts_with("== job ") ? text.substr(text.find('\n') + 1) : "no header: " + text;
}

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 200 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(25));
  return condition();
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_rank_reads_the_plan_of_its_launcher_and_no_other) {
  TemporaryDirectory folder;
  const std::string plan(100'000, 'p');
  launch(folder, 3, "cat $ALTIPLANO_PLAN", false, 0, plan);
  for (int rank = 0; rank < 3; ++rank) BOOST_TEST((log_of(folder, rank) == plan), rank);
  setenv("ALTIPLANO_PLAN", "/a/launcher/above/this/one", 1);
  TemporaryDirectory other;
  launch(other, 1, "echo plan: $ALTIPLANO_PLAN");
  unsetenv("ALTIPLANO_PLAN");
  BOOST_TEST(log_of(other, 0) == "plan:\n");
}

BOOST_AUTO_TEST_CASE(every_rank_knows_its_place_and_writes_its_own_log) {
  TemporaryDirectory folder;
  const auto run = launch(
      folder, 3,
      "echo place $ALTIPLANO_RANK of $ALTIPLANO_WORLD_SIZE; echo ${ALTIPLANO_RENDEZVOUS%%-*} $ALTIPLANO_THREADS");
  BOOST_TEST(run.outcome.exit_code == 0);
  BOOST_TEST(run.outcome.failed_rank == -1);
  for (int rank = 0; rank < 3; ++rank) {
    const std::string log = read_bytes(folder / fmt::format("logs/rank-{}.log", rank));
    BOOST_TEST(contains(log, fmt::format("place {} of 3\nunix:altiplano ", rank)), log);
  }
  BOOST_TEST(contains(run.out, "place 0 of 3"));
  BOOST_TEST(!contains(run.out, "place 1 of 3"));
}

BOOST_AUTO_TEST_CASE(ranks_get_the_threads_that_their_scheduler_gives_but_never_more_than_the_mask_has) {
  const int share = threads_per_rank(num_usable_cpus(), 2);
  for (const auto& [given, expected] : {std::pair(0, share), std::pair(1, 1), std::pair(1000, share)}) {
    TemporaryDirectory folder;
    const auto run = launch(folder, 2, "echo threads $ALTIPLANO_THREADS", false, given);
    BOOST_TEST(run.out == fmt::format("threads {}\n", expected));
  }
}

BOOST_AUTO_TEST_CASE(the_console_shows_errors_of_every_rank) {
  TemporaryDirectory folder;
  const auto run = launch(folder, 3, "echo trouble of $ALTIPLANO_RANK >&2");
  for (const char* line : {"trouble of 0\n", "rank 1: trouble of 1\n", "rank 2: trouble of 2\n"})
    BOOST_TEST(contains(run.err, line), run.err);
  BOOST_TEST(log_of(folder, 2) == "trouble of 2\n");
}

BOOST_AUTO_TEST_CASE(the_first_rank_that_fails_ends_the_job_and_is_named_with_its_error) {
  TemporaryDirectory folder;
  const auto run =
      launch(folder, 4, "if [ $ALTIPLANO_RANK = 2 ]; then echo 'error: disk is full' >&2; exit 3; fi; sleep 60");
  BOOST_TEST(run.outcome.exit_code == 3);
  BOOST_TEST(run.outcome.failed_rank == 2);
  BOOST_TEST(run.outcome.message.starts_with("rank 2 ("), run.outcome.message);
  BOOST_TEST(run.outcome.message.ends_with(", local 2) failed with exit code 3: disk is full"), run.outcome.message);
  BOOST_TEST(run.seconds < 10);
}

BOOST_AUTO_TEST_CASE(a_rank_that_ignores_the_request_to_stop_is_killed) {
  TemporaryDirectory folder;
  const auto run = launch(
      folder, 2, "if [ $ALTIPLANO_RANK = 0 ]; then sleep 0.3; exit 5; fi; trap '' TERM; while :; do sleep 1; done");
  BOOST_TEST(run.outcome.exit_code == 5);
  BOOST_TEST(run.outcome.failed_rank == 0);
  BOOST_TEST(run.seconds < 10);
}

BOOST_AUTO_TEST_CASE(a_rank_killed_by_a_signal_gives_128_plus_its_number) {
  TemporaryDirectory folder;
  const auto run = launch(folder, 3, "if [ $ALTIPLANO_RANK = 1 ]; then kill -KILL $$; fi; sleep 60");
  BOOST_TEST(run.outcome.exit_code == 137);
  BOOST_TEST(contains(run.outcome.message, "rank 1 ("), run.outcome.message);
  BOOST_TEST(contains(run.outcome.message, "was killed by signal 9 (Killed)"), run.outcome.message);
}

BOOST_AUTO_TEST_CASE(a_rank_that_only_reports_anothers_failure_is_not_blamed) {
  TemporaryDirectory folder;
  // Rank 0 ends first, because rank 1, which is the cause, still tidies up.
  const auto run = launch(folder, 2, R"(
    if [ $ALTIPLANO_RANK = 0 ]; then sleep 0.5; echo 'error: rank 1 (n1, local 1) failed first: loss is not finite' >&2; exit 1; fi
    trap 'echo "error: loss is not finite at step 7" >&2; exit 5' TERM; while :; do sleep 0.05; done)");
  BOOST_TEST(run.outcome.exit_code == 5);
  BOOST_TEST(run.outcome.failed_rank == 1);
  BOOST_TEST(run.outcome.message.ends_with("loss is not finite at step 7"), run.outcome.message);
}

BOOST_AUTO_TEST_CASE(a_message_of_several_lines_is_one_and_what_others_heard_of_it_is_not_said_again) {
  TemporaryDirectory folder;
  // The cause ends last: that the others only report it must be seen from messages of several lines too.
  const auto run = launch(folder, 3, R"(
    if [ $ALTIPLANO_RANK != 1 ]; then sleep 0.5
      echo 'note: still here' >&2; printf 'error: rank 1 failed first: no checkpoint:\n  a is damaged\n' >&2; exit 1; fi
    trap 'printf "error: no checkpoint:\n  a is damaged\n  b is damaged\n" >&2; exit 4' TERM
    while :; do sleep 0.05; done)");
  BOOST_TEST(run.outcome.exit_code == 4);
  BOOST_TEST(run.outcome.failed_rank == 1);
  BOOST_TEST(run.outcome.message.ends_with(": no checkpoint:\n  a is damaged\n  b is damaged"), run.outcome.message);
  BOOST_TEST(!contains(run.err, "error: "), run.err);
  BOOST_TEST(contains(run.err, "note: still here\n"), run.err);
  // One of the two may be ended before it says so.
  BOOST_TEST(contains(log_of(folder, 0) + log_of(folder, 2), "error: rank 1 failed first"));
}

BOOST_AUTO_TEST_CASE(an_error_of_its_own_of_another_rank_is_shown) {
  TemporaryDirectory folder;
  const auto run = launch(folder, 2, R"(
    if [ $ALTIPLANO_RANK = 0 ]; then sleep 0.5; echo 'error: disk is full' >&2; exit 1; fi
    trap 'echo "error: no memory" >&2; exit 3' TERM; while :; do sleep 0.05; done)");
  BOOST_TEST(run.outcome.exit_code == 1);
  BOOST_TEST(run.err.ends_with("rank 1: error: no memory\n"), run.err);
  BOOST_TEST(!contains(run.err, "disk is full"), run.err);  // the outcome's message
}

BOOST_AUTO_TEST_CASE(errors_of_a_job_that_ends_well_are_shown) {
  TemporaryDirectory folder;
  const auto run = launch(folder, 2, "echo \"error: of $ALTIPLANO_RANK\" >&2");
  BOOST_TEST(run.outcome.exit_code == 0);
  BOOST_TEST(run.err == "error: of 0\nrank 1: error: of 1\n");
}

BOOST_AUTO_TEST_CASE(a_rank_that_ends_early_with_0_does_not_end_the_others) {
  TemporaryDirectory folder;
  const auto run = launch(folder, 2, "if [ $ALTIPLANO_RANK = 1 ]; then exit 0; fi; sleep 1; echo finished");
  BOOST_TEST(run.outcome.exit_code == 0);
  BOOST_TEST(run.out == "finished\n");
}

BOOST_AUTO_TEST_CASE(a_signal_to_the_launcher_reaches_every_rank_and_saved_early_is_exit_code_75) {
  for (const char* name : {"TERM", "USR1", "INT"}) {
    TemporaryDirectory folder;
    const auto run = launch(folder, 3,
                            fmt::format(R"(
      trap 'echo stopping; exit 75' {0}; echo ready; if [ $ALTIPLANO_RANK = 2 ]; then sleep 1; kill -{0} $PPID; fi
      while :; do sleep 0.05; done)",
                                        name));
    BOOST_TEST(run.outcome.exit_code == 75, name << ": " << run.outcome.message);
    BOOST_TEST(run.outcome.failed_rank == -1);
    for (int rank = 0; rank < 3; ++rank)
      BOOST_TEST(contains(read_bytes(folder / fmt::format("logs/rank-{}.log", rank)), "stopping"),
                 name << " rank " << rank);
  }
}

BOOST_AUTO_TEST_CASE(what_a_rank_leaves_running_is_killed) {
  TemporaryDirectory folder;
  const auto run = launch(folder, 1, "sleep 1000 & echo $!");
  BOOST_TEST(run.outcome.exit_code == 0);
  const int left = std::stoi(run.out);
  BOOST_TEST(eventually([&] { return kill(left, 0) != 0; }));
  BOOST_TEST(run.seconds < 10);
}

BOOST_AUTO_TEST_CASE(ranks_die_with_their_launcher) {
  TemporaryDirectory folder;
  const pid_t launcher = fork();
  if (launcher == 0) {
    LaunchRequest request;
    request.ranks = 2;
    request.command = {"/bin/sh", "-c", "echo $$; exec sleep 1000"};
    request.log_directory = folder / "logs";
    request.console_out = request.console_err = open("/dev/null", O_WRONLY);
    (void)launch_ranks(request);
    _exit(0);
  }
  std::vector<int> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string log = folder / fmt::format("logs/rank-{}.log", rank);
    const auto complete = [&] { return access(log.c_str(), R_OK) == 0 && contains(log_of(folder, rank), "\n"); };
    BOOST_REQUIRE(eventually(complete));
    ranks.push_back(std::stoi(log_of(folder, rank)));
  }
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  for (int rank : ranks) BOOST_TEST(eventually([&] { return kill(rank, 0) != 0; }));
}

BOOST_AUTO_TEST_CASE(a_command_that_cannot_run_is_named) {
  TemporaryDirectory folder;
  LaunchRequest request;
  request.command = {"/no/such/program"};
  request.log_directory = folder / "logs";
  request.console_out = request.console_err = open("/dev/null", O_WRONLY);
  const auto outcome = launch_ranks(request);
  close(request.console_out);
  BOOST_REQUIRE(outcome.is_ok());
  BOOST_TEST(outcome->exit_code == 127);
  BOOST_TEST(outcome->message.ends_with("cannot execute /no/such/program: No such file or directory"),
             outcome->message);
}

BOOST_AUTO_TEST_CASE(pinned_ranks_have_one_share_of_the_processors_each) {
  TemporaryDirectory folder;
  launch(folder, 2, "grep Cpus_allowed_list /proc/self/status", true);
  const std::string first = log_of(folder, 0), second = log_of(folder, 1);
  cpu_set_t mask;
  BOOST_REQUIRE(sched_getaffinity(0, sizeof(mask), &mask) == 0);
  BOOST_TEST(first.starts_with("Cpus_allowed_list:"));
  if (CPU_COUNT(&mask) > 1)
    BOOST_TEST(first != second);
  else
    BOOST_TEST(first == second);
}

BOOST_AUTO_TEST_CASE(a_log_folder_that_cannot_be_made_is_an_error) {
  LaunchRequest request;
  request.command = {"/bin/true"};
  request.log_directory = "/proc/no/logs";
  const auto outcome = launch_ranks(request);
  BOOST_REQUIRE(!outcome.is_ok());
  BOOST_TEST(contains(outcome.status().message(), "/proc/no/logs"));
}
