// What goes wrong while a job runs, through the program and with real signals: a table of (fault, instant, victim).
// tests/slow/failures_test.cpp is the long form, at random instants.
#include <signal.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <span>

#include "framework/base/text.hpp"
#include "tests/support/faulty_job.hpp"

namespace altiplano::test {

namespace {

constexpr int kSaved = 75, kStuck = 124;
const Instant kAtOnce{0, 0}, kEarly{0, 50}, kRunning{2, 30};

const RunFault kTable[] = {
    {"kill_early", SIGKILL, kEarly, 0, "", 128 + SIGKILL,
     "error: rank 0 (|, local 0) was killed by signal 9 (Killed) while starting"},
    {"kill", SIGKILL, kRunning, 3, "", 128 + SIGKILL,
     "error: rank 3 (|, local 3) was killed by signal 9 (Killed) in step "},
    {"segv", SIGSEGV, kRunning, 1, "", 128 + SIGSEGV,
     "error: rank 1 (|was killed by signal 11 (Segmentation fault) in step "},
    {"stop", SIGSTOP, kRunning, 2, "", kStuck,
     "error: rank 2 (|, local 2) stopped answering at step |its process is stopped (SIGSTOP)"},
    {"stop_early", SIGSTOP, kAtOnce, 1, "", kStuck, "error: rank 1 (|, local 1) "},
    {"exit_0",
     0,
     {},
     2,
     "what=exit0 rank=2 step=3",
     1,
     "error: rank 2 (|ended with exit code 0 before the run was done in step 3"},
    {"device_error",
     0,
     {},
     1,
     "what=error rank=1 step=2",
     1,
     "error: rank 1 (|failed with exit code 1 in step 2: the device broke down"},
    {"hang", 0, {}, 3, "what=hang rank=3 step=2", kStuck, "error: rank 3 (|, local 3) stopped answering at step 2 in "},
    {"term_rank_at_once", SIGTERM, kAtOnce, 1, "", kSaved, "stopped   after step 1"},
    {"int_launcher", SIGINT, kRunning, kLauncher, "", kSaved, "stopped   after step "},
    {"usr1_rank", SIGUSR1, kRunning, 3, "", kSaved, "stopped   after step "},
    {"hup_launcher", SIGHUP, kRunning, kLauncher, "", kSaved, "stopped   after step "},
    {"int_twice", SIGINT, kRunning, kLauncher, "", 128 + SIGINT, "error: killed, as a second SIGINT asked", 2},
    {"launcher_killed_early", SIGKILL, kEarly, kLauncher, "", 128 + SIGKILL, ""},
    {"launcher_killed", SIGKILL, kRunning, kLauncher, "", 128 + SIGKILL, ""},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(failures)

BOOST_AUTO_TEST_CASE(whatever_happens_the_run_is_down_in_time_the_cause_is_the_last_line_and_nothing_is_left) {
  FaultyJob job;
  constexpr size_t kTogether = 4;
  const std::span<const RunFault> rows(kTable);
  for (size_t first = 0; first < rows.size(); first += kTogether)
    job.check_together(rows.subspan(first, std::min(kTogether, rows.size() - first)));
}

BOOST_AUTO_TEST_CASE(a_nan_in_one_microbatch_of_one_rank_is_skipped_by_all_and_step_rank_and_microbatch_are_named) {
  struct Nan {
    const char *name, *plan, *fault, *where;
    int rank, microbatch;
  };
  const std::string data2 = degrees_text(2, 2, 1), pipeline2 = degrees_text(2, 1, 2);
  for (const Nan& nan :
       {Nan{"tensor", data2.c_str(), "rank=2 sample=2 kind=layer_norm", "forward of block.0.ln1", 2, 1},
        Nan{"pipeline", pipeline2.c_str(), "rank=1 sample=4 kind=layer_norm_grad_input", "backward of ", 1, 2}}) {
    FaultyJob job;
    const std::string settings = std::string(nan.plan) + "train.max_steps=4 device.kind=faulty plugins.path=[plugins]";
    BackgroundRun run(job.folder(), job.arguments(nan.name, settings), nan.name,
                      job.environment(std::string("what=nan step=3 ") + nan.fault));
    BOOST_TEST(run.wait() == 0, run.output());
    BOOST_TEST(contains(run.output(), fmt::format("step 3 skipped on all ranks, not finite: rank {} (", nan.rank)),
               run.output());
    BOOST_TEST(contains(run.output(), fmt::format("), microbatch {} (samples ", nan.microbatch)), run.output());
    BOOST_TEST(contains(run.output(), nan.where), run.output());
    auto steps = read_steps(job.folder() / nan.name + "/metrics.jsonl");
    BOOST_TEST(steps.size() == 4u);
    for (const auto& [step, line] : steps) BOOST_TEST(line.contains("skipped") == (step == 3), line.dump());
    BOOST_TEST(steps[3]["not_finite"]["rank"] == nan.rank, steps[3].dump());
    BOOST_TEST(steps[3]["not_finite"]["microbatch"] == nan.microbatch, steps[3].dump());
  }
}

BOOST_AUTO_TEST_CASE(a_nan_that_is_gone_when_the_step_is_computed_again_is_said_to_have_passed) {
  FaultyJob job;
  BackgroundRun run(job.folder(), job.arguments("run", "train.max_steps=3 device.kind=faulty plugins.path=[plugins]"),
                    "run", job.environment("what=nan rank=1 step=2 sample=0 kind=layer_norm times=1"));
  BOOST_TEST(run.wait() == 0, run.output());
  BOOST_TEST(contains(run.output(), "step 2 skipped on all ranks, not finite: computed again it is finite"),
             run.output());
}

BOOST_AUTO_TEST_CASE(a_full_disk_costs_lines_of_logs_and_metrics_but_not_the_run) {
  if (!SmallDisk::is_possible()) return;
  FaultyJob job;
  BackgroundRun run(job.folder(), job.arguments("run"), "run",
                    job.environment() + " " + SmallDisk::environment("run", "4m"));
  const auto is_said = [&](const std::string& text) {
    wait_until([&] { return run.has_ended() || contains(run.output(), text); }, text);
    BOOST_TEST(contains(run.output(), text), run.output());
  };
  is_said("step:       2/");
  const SmallDisk disk(job.folder(), "run", run);
  disk.fill();
  is_said("note: run/metrics.jsonl cannot be written: No space left on device; the run goes on without its lines");
  is_said("note: run/logs/rank-0.log cannot be written: No space left on device; the run goes on");
  disk.release();
  is_said("note: run/metrics.jsonl is written again; ");
  is_said("note: run/logs/rank-0.log is written again; ");
  const auto lines = read_metrics(disk.path() + "/metrics.jsonl");
  const std::string log = read_bytes(disk.path() + "/logs/rank-0.log");
  BOOST_TEST(contains(log, " bytes are missing here: No space left on device"), log);
  int64_t before = 0;
  for (const auto& line : lines) {
    BOOST_TEST(line["step"].get<int64_t>() > before, line.dump());
    before = line["step"].get<int64_t>();
  }
  kill(run.launcher(), SIGTERM);
  BOOST_TEST(run.wait() == kSaved, run.output());
}

BOOST_AUTO_TEST_CASE(a_save_on_a_full_disk_is_told_by_all_keeps_the_last_checkpoint_and_is_tried_again) {
  if (!SmallDisk::is_possible()) return;
  FaultyJob job;
  BackgroundRun run(job.folder(), job.arguments("run", "checkpoint.every_steps=10 checkpoint.keep_last=2"), "run",
                    job.environment() + " " + SmallDisk::environment("run", "6m"));
  const auto wait_for = [&](const std::string& text) {
    wait_until([&] { return run.has_ended() || contains(run.output(), text); }, text);
    BOOST_TEST(contains(run.output(), text), run.output());
  };
  wait_for("checkpoint step 10 saved");
  const SmallDisk disk(job.folder(), "run", run);
  disk.fill(200 << 10);
  wait_for(" not saved: ");
  wait_for("; training goes on, the next save is at step ");
  const std::string told = run.output().substr(run.output().find("note: rank "));
  BOOST_TEST(contains(told, "No space left on device"), told);
  BOOST_TEST(contains(told, "; a checkpoint needs "), told);
  BOOST_TEST(contains(told, " are free in run/checkpoints; training goes on"), told);
  const auto newest = [&] { return read_bytes(disk.path() + "/checkpoints/latest"); };
  const std::string before = newest();
  BOOST_TEST(!read_checkpoint(disk.path() + "/checkpoints/" + trim(before)).empty());
  disk.release();
  wait_until([&] { return run.has_ended() || newest() != before; }, "a later save goes well");
  disk.fill(200 << 10);
  kill(run.launcher(), SIGTERM);
  BOOST_TEST(run.wait() == 1, run.output());
  const std::string last = last_line(run.output());
  BOOST_TEST(contains(last, "error: rank "), last);
  BOOST_TEST(contains(last, " not saved: "), last);
  BOOST_TEST(contains(last, "the last checkpoint is that of step "), last);
}

BOOST_AUTO_TEST_CASE(a_read_only_folder_is_refused_before_a_rank_starts) {
  if (!SmallDisk::is_possible()) return;
  FaultyJob job;
  BackgroundRun run(job.folder(), job.arguments("run"), "run",
                    "unshare -m sh -c 'mkdir run && mount -t tmpfs -o ro none run && exec \"$@\"' sh");
  BOOST_TEST(run.wait() == 2, run.output());
  BOOST_TEST(last_line(run.output()) ==
                 "error: --set run.dir: the folder run cannot be written: Read-only file system; set run.dir to one "
                 "that can",
             run.output());
}

BOOST_AUTO_TEST_CASE(a_shared_memory_file_system_that_is_too_small_is_refused_with_both_numbers) {
  if (!SmallDisk::is_possible()) return;
  FaultyJob job;
  BackgroundRun run(job.folder(), job.arguments("run"), "run",
                    "unshare -m sh -c 'mount -t tmpfs -o size=1m none /dev/shm && exec \"$@\"' sh");
  BOOST_TEST(run.wait() == 2, run.output());
  const std::string last = last_line(run.output());
  BOOST_TEST(contains(last, "error: rank 0 ("), last);
  BOOST_TEST(
      contains(last, "failed with exit code 2 while starting: comm/shm needs 8.9 MiB in /dev/shm, has 1.0 MiB; "),
      last);
  BOOST_TEST(!contains(run.output(), "step: "), run.output());
  job.check_nothing_left("run");
}

BOOST_AUTO_TEST_CASE(two_jobs_started_together_do_not_disturb_each_other) {
  FaultyJob().check_pairs(3);
}

BOOST_AUTO_TEST_CASE(a_log_folder_used_again_says_where_each_run_begins) {
  FaultyJob job;
  for (int i = 0; i < 2; ++i) job.folder().launch(2, "run", "train.max_steps=2");
  const std::string log = read_bytes(job.folder() / "run/logs/rank-0.log");
  BOOST_TEST(log.starts_with("== job local-"), log);
  const size_t second = log.find("\n== job local-");
  BOOST_REQUIRE(second != std::string::npos);
  BOOST_TEST(contains(log.substr(0, second), "done      2 steps"), log);
  BOOST_TEST(contains(log.substr(second), "rank 0 of 2 on "), log);
  BOOST_TEST(log.find("\n== job local-", second + 1) == std::string::npos, log);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
