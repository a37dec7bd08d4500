// A run that saves at every step is killed at fifty random instants; each time the newest checkpoint is whole and the
// next start goes on from it. At the end the weights are those of a run that nobody disturbed.
#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <random>
#include <thread>

#include "framework/checkpoint/restore.hpp"
#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

const std::string kSettings = degrees_text(2, 1, 1) + "checkpoint.every_steps=1 checkpoint.keep_last=2 ";

int64_t newest_step(const JobFolder& job) {
  auto found = find_checkpoint(job / "run/checkpoints", "auto", CheckLevel::kChecksums);
  BOOST_REQUIRE_MESSAGE(found.is_ok(), found.status().to_string());
  BOOST_TEST(found->skipped.empty());
  return found->checkpoint ? found->checkpoint->manifest().info.step : 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_kills)

BOOST_AUTO_TEST_CASE(fifty_kills_lose_no_checkpoint_and_change_no_number) {
  JobFolder job;
  std::mt19937 random(11);
  int64_t newest = 0;
  for (int kill_number = 0; kill_number < 50; ++kill_number) {
    BackgroundRun run(job, job.launch_arguments(2, "run", kSettings + "train.max_steps=1000000"), "run");
    const int64_t goal = newest + static_cast<int64_t>(random() % 3);
    wait_until([&] { return newest_step(job) >= goal && run.rank(1) > 0; }, "a few steps");
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
    const int victim = static_cast<int>(random() % 3) - 1;
    ::kill(victim < 0 ? run.launcher() : run.rank(victim), SIGKILL);
    run.wait();
    const int64_t now = newest_step(job);
    BOOST_TEST(now >= newest);
    newest = now;
  }
  const std::string end = "train.max_steps=" + std::to_string(newest + 2);
  job.launch(2, "run", kSettings + end, "--resume must");
  job.launch(2, "whole", degrees_text(2, 1, 1) + end);
  BOOST_TEST(differing_tensors(job.checkpoint("run", newest + 2), job.checkpoint("whole", newest + 2)) == "");
  BOOST_TEST(read_steps(job / "run/metrics.jsonl").size() == static_cast<size_t>(newest + 2));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
