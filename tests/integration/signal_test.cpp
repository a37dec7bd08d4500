// Signals and deaths, through the program: whoever is asked to stop, all ranks save one step and the run goes on later
// as if nothing had been; whoever dies or sleeps is named.
#include <signal.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <tuple>

#include "tests/support/contains.hpp"
#include "tests/support/faults.hpp"
#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

const std::string kPlan = degrees_text(2, 2, 1);
const std::string kEndless = kPlan + "train.max_steps=1000000 ";
constexpr int kSaved = 75;

std::string four_ranks_up_to(int64_t step) {
  return kPlan + "train.max_steps=" + std::to_string(step) + " ";
}

int64_t steps_done(const JobFolder& job, const std::string& run) {
  auto lines = read_metrics(job / run + "/metrics.jsonl");
  return lines.empty() ? 0 : lines.back()["step"].get<int64_t>();
}

void wait_for_step(const JobFolder& job, const std::string& run, int64_t step) {
  wait_until([&] { return steps_done(job, run) >= step; }, run + " reaches step " + std::to_string(step));
}

/// The last line that is not empty.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

/// After the stop: the step saved is the last in the metrics; two more steps equal the uninterrupted run's.
void check_goes_on(const JobFolder& job, const std::string& run) {
  int64_t saved = steps_done(job, run), end = saved + 2;
  BOOST_TEST(std::filesystem::exists(job.checkpoint(run, saved) + "/manifest.json"));
  job.launch(4, run, four_ranks_up_to(end), "--resume must");
  job.launch(4, run + "-whole", four_ranks_up_to(end));
  auto steps = read_steps(job / run + "/metrics.jsonl"),
       expected = read_steps(job / (run + "-whole") + "/metrics.jsonl");
  BOOST_TEST(steps.size() == static_cast<size_t>(end));
  for (const auto& [step, line] : steps) BOOST_TEST(line["loss"] == expected[step]["loss"], "step " << step);
  BOOST_TEST(differing_tensors(job.checkpoint(run, end), job.checkpoint(run + "-whole", end)) == "");
}

/// To the launcher and its ranks at once, as Slurm signals every process of a step.
void signal_all(const BackgroundRun& run, int ranks, int signal) {
  for (int rank = 0; rank < ranks; ++rank)
    if (const pid_t process = run.rank(rank); process > 0) kill(process, signal);
  kill(run.launcher(), signal);
}

int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// That the wish was heard, before the end, and the end: once each, however many ranks there are.
void check_is_told_once(const std::string& output, const std::string& heard) {
  BOOST_TEST(times(output, heard) == 1, output);
  BOOST_TEST(times(output, "stopped   after step ") == 1, output);
  BOOST_TEST(output.find(heard) < output.find("stopped   after step "), output);
  BOOST_TEST(!contains(output, "rank 1: note: "), output);
}

struct Stop {
  const char* name;
  int signal;
  int rank;  ///< -1: the launcher
};

}  // namespace

BOOST_AUTO_TEST_SUITE(signals)

BOOST_AUTO_TEST_CASE(whoever_gets_the_signal_all_ranks_save_the_same_step_and_go_on_later) {
  JobFolder job;
  for (const Stop& stop :
       {Stop{"term", SIGTERM, -1}, Stop{"usr1", SIGUSR1, -1}, Stop{"rank2", SIGTERM, 2}, Stop{"rank0", SIGUSR1, 0}}) {
    BackgroundRun run(job, job.launch_arguments(4, stop.name, kEndless), stop.name);
    wait_for_step(job, stop.name, 3);
    BOOST_REQUIRE(kill(stop.rank < 0 ? run.launcher() : run.rank(stop.rank), stop.signal) == 0);
    int code = run.wait();
    BOOST_TEST(code == kSaved, stop.name << " " << code << " " << run.output());
    BOOST_TEST(contains(run.output(), "stopped   after step " + std::to_string(steps_done(job, stop.name))),
               run.output());
    check_is_told_once(run.output(), stop.signal == SIGTERM ? "note: SIGTERM heard" : "note: SIGUSR1 heard");
    check_goes_on(job, stop.name);
  }
}

BOOST_AUTO_TEST_CASE(a_save_on_a_slow_disk_is_done_when_slurm_ends_the_job_for_its_time_limit) {
  JobFolder job;
  const Fault slow{.directory = job / "run/checkpoints", .delay = 40};
  BackgroundRun run(job, job.launch_arguments(4, "run", kEndless), "run", fault_environment(slow));
  wait_for_step(job, "run", 3);
  signal_all(run, 4, SIGCONT);  // Slurm sends it first, to wake who is stopped
  signal_all(run, 4, SIGTERM);
  wait_until([&] { return std::filesystem::exists(job / "run/checkpoints"); }, "the save begins");
  signal_all(run, 4, SIGTERM);  // as an impatient user does
  // Slurm kills 30 s after the signal (KillWait).
  BOOST_TEST(run.wait(std::chrono::seconds(30)) == kSaved, run.output());
  check_goes_on(job, "run");
}

BOOST_AUTO_TEST_CASE(a_run_that_is_told_to_continue_goes_on_and_each_stop_signal_ends_it_saved) {
  JobFolder job;
  for (int signal : {SIGUSR2, SIGHUP, SIGINT}) {
    const std::string name = "signal" + std::to_string(signal);
    BackgroundRun run(job, job.launch_arguments(4, name, kEndless), name);
    wait_for_step(job, name, 2);
    signal_all(run, 4, SIGCONT);
    wait_for_step(job, name, steps_done(job, name) + 2);
    BOOST_REQUIRE(kill(run.rank(1), signal) == 0);
    BOOST_TEST(run.wait() == kSaved, run.output());
    BOOST_TEST(std::filesystem::exists(job.checkpoint(name, steps_done(job, name)) + "/manifest.json"), name);
  }
}

BOOST_AUTO_TEST_CASE(a_file_system_without_locks_is_told_and_trains_and_resumes) {
  JobFolder job;
  for (int error : {ENOLCK, EOPNOTSUPP, 524}) {
    const std::string name = "errno" + std::to_string(error);
    const std::string environment = fault_environment({.directory = job.path(), .no_locks = error});
    for (int64_t step : {2, 4}) {
      BackgroundRun run(job, job.launch_arguments(4, name, four_ranks_up_to(step)), name, environment);
      BOOST_TEST(run.wait() == 0, run.output());
      BOOST_TEST(contains(run.output(), "note: " + name + "/lock: the file system has no locks ("), run.output());
    }
    BOOST_TEST(read_steps(job / name + "/metrics.jsonl").size() == 4u);
  }
}

BOOST_AUTO_TEST_CASE(a_run_saves_and_ends_by_itself_before_its_time_is_over_and_goes_on) {
  JobFolder job;
  const std::string soon =
      "SLURM_JOB_ID=4 SLURM_JOB_NODELIST=here SLURM_TASKS_PER_NODE=1 "
      "SLURM_JOB_END_TIME=$(($(date +%s)+4)) ";
  for (const auto& [name, settings, environment] :
       {std::tuple("limit", "train.time_limit=0:04 checkpoint.every_steps=50", std::string()),
        std::tuple("slurm", "checkpoint.every_steps=50", soon)}) {
    BackgroundRun run(job, job.launch_arguments(4, name, kEndless + settings), name, environment);
    BOOST_TEST(run.wait() == kSaved, run.output());
    const std::string last = std::to_string(steps_done(job, name));
    BOOST_TEST(contains(run.output(), "\ntime      step " + last + " is the last one: 0:00:0"), run.output());
    BOOST_TEST(contains(run.output(), "stopped   after step " + last), run.output());
    check_goes_on(job, name);
  }
  BackgroundRun run(job, job.launch_arguments(4, "none", four_ranks_up_to(4) + "train.time_limit=none"), "none", soon);
  BOOST_TEST(run.wait() == 0, run.output());
  const auto alone = job.altiplano(
      "train -c job.yaml --set run.dir=alone --set train.max_steps=1000000 "
      "--set train.time_limit=0:03 --set lr_scheduler.decay_steps=12");
  BOOST_TEST(alone.exit_code == kSaved, alone.output);
}

BOOST_AUTO_TEST_CASE(a_killed_launcher_takes_its_ranks_along_and_each_step_stands_once) {
  JobFolder job;
  {
    BackgroundRun run(job, job.launch_arguments(4, "run", kEndless + "checkpoint.every_steps=5"), "run");
    wait_for_step(job, "run", 8);
    pid_t rank = run.rank(1);
    BOOST_REQUIRE(rank > 0);
    kill(run.launcher(), SIGKILL);
    BOOST_TEST(run.wait() == 128 + SIGKILL);
    wait_until([&] { return kill(rank, 0) != 0; }, "rank 1 ends with its launcher");
  }
  int64_t end = steps_done(job, "run") + 3;
  job.launch(4, "run", four_ranks_up_to(end), "--resume must");
  job.launch(4, "whole", four_ranks_up_to(end));
  auto lines = read_metrics(job / "run/metrics.jsonl");
  BOOST_REQUIRE(lines.size() == static_cast<size_t>(end));
  for (size_t i = 0; i < lines.size(); ++i) BOOST_TEST(lines[i]["step"] == i + 1);
  BOOST_TEST(differing_tensors(job.checkpoint("run", end), job.checkpoint("whole", end)) == "");
}

BOOST_AUTO_TEST_CASE(a_killed_rank_ends_the_job_and_is_named) {
  JobFolder job;
  BackgroundRun run(job, job.launch_arguments(4, "run", kEndless), "run");
  wait_for_step(job, "run", 2);
  kill(run.rank(3), SIGKILL);
  int code = run.wait(std::chrono::seconds(10));
  BOOST_TEST(code == 128 + SIGKILL, run.output());
  std::string line = last_line(run.output());
  BOOST_TEST(contains(line, "error: rank 3 ("), line);
  BOOST_TEST(contains(line, "signal 9"), line);
  char host[256] = {};
  BOOST_REQUIRE(gethostname(host, sizeof host - 1) == 0);
  BOOST_TEST(contains(line, std::string(host).substr(0, std::string(host).find('.'))), line);
  BOOST_TEST(contains(line, "; no checkpoint is in run/checkpoints: a new start begins anew"), line);
}

BOOST_AUTO_TEST_CASE(what_a_killed_run_leaves_and_how_it_goes_on_is_told) {
  JobFolder job;
  for (const auto& [name, more, advice] :
       {std::tuple("auto", "", "start again to go on from it"),
        std::tuple("none", "--resume none", "start again with --resume auto to go on")}) {
    BackgroundRun run(job, job.launch_arguments(2, name, "train.max_steps=1000000 checkpoint.every_steps=2", more),
                      name);
    wait_until([&] { return contains(run.output(), "checkpoint step 2 saved"); }, "a checkpoint");
    kill(run.rank(1), SIGKILL);
    BOOST_TEST(run.wait(std::chrono::seconds(10)) == 128 + SIGKILL, run.output());
    const std::string line = last_line(run.output());
    BOOST_TEST(contains(line, "; the checkpoint of step "), line);
    BOOST_TEST(contains(line, std::string(" remains in ") + name + "/checkpoints: " + advice), line);
  }
}

// A handler would lay its frame where kernels of oneDNN keep data (framework/launch/stop_signal.hpp).
BOOST_AUTO_TEST_CASE(no_stop_signal_can_interrupt_the_computation_of_a_rank) {
  JobFolder job;
  BackgroundRun run(job, job.launch_arguments(2, "run", "train.max_steps=1000000"), "run");
  wait_for_step(job, "run", 2);
  const std::string status = read_bytes("/proc/" + std::to_string(run.rank(0)) + "/status");
  const auto mask = [&](const std::string& name) {
    const size_t at = status.find(name + ":\t");
    BOOST_REQUIRE(at != std::string::npos);
    return std::stoull(status.substr(at + name.size() + 2), nullptr, 16);
  };
  for (int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP}) {
    const uint64_t bit = uint64_t{1} << (signal - 1);
    BOOST_TEST((mask("SigCgt") & bit) == 0u, signal << " has a handler");
    BOOST_TEST((mask("SigBlk") & bit) != 0u, signal << " is not blocked where the rank computes");
  }
  kill(run.rank(0), SIGTERM);
  BOOST_TEST(run.wait() == kSaved, run.output());
}

BOOST_AUTO_TEST_CASE(a_process_alone_says_that_it_was_asked_to_stop) {
  JobFolder job;
  BackgroundRun run(job, "train -c job.yaml --set run.dir=run --set train.max_steps=1000000", "run");
  wait_for_step(job, "run", 2);
  BOOST_TEST(contains(run.output(), "\nstart     step 1 of 1000000; predicted "), run.output());
  kill(run.launcher(), SIGINT);
  BOOST_TEST(run.wait() == kSaved, run.output());
  check_is_told_once(run.output(), "note: SIGINT heard; the step that runs is finished and saved first\n");
}

BOOST_AUTO_TEST_CASE(a_rank_that_sleeps_is_named_by_the_others) {
  JobFolder job;
  BackgroundRun run(job, job.launch_arguments(4, "run", kEndless + "comm.timeout_seconds=3"), "run");
  wait_for_step(job, "run", 2);
  kill(run.rank(1), SIGSTOP);
  int code = run.wait(std::chrono::seconds(30));
  BOOST_TEST(code == 124, code << run.output());
  std::string line = last_line(run.output());
  BOOST_TEST(contains(line, "rank 1"), line);
}

BOOST_AUTO_TEST_CASE(a_second_job_in_a_runs_folder_is_refused_and_the_first_goes_on) {
  JobFolder job;
  BackgroundRun first(job, job.launch_arguments(2, "run", "train.max_steps=1000000"), "first");
  wait_for_step(job, "run", 2);
  auto second = job.altiplano(job.launch_arguments(2, "run", "train.max_steps=4"));
  BOOST_TEST(second.exit_code == 2, second.output);
  BOOST_TEST(contains(second.output, "run/lock: another job is at work here: host "), second.output);
  const int64_t before = steps_done(job, "run");
  wait_for_step(job, "run", before + 2);
  ::kill(first.launcher(), SIGTERM);
  BOOST_TEST(first.wait() == kSaved, first.output());
}

BOOST_AUTO_TEST_CASE(a_run_that_skips_its_steps_ends_as_diverged_and_saves_nothing_over_good_weights) {
  JobFolder job;
  auto result = job.altiplano(job.launch_arguments(2, "run", "optimizer.lr=1e30 train.max_steps=60"));
  BOOST_TEST(result.exit_code == 5, result.output);
  BOOST_TEST(contains(result.output, "not finite for 20 steps in a row, all skipped"), result.output);
  BOOST_TEST(!std::filesystem::exists(job / "run" + "/checkpoints/latest"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
