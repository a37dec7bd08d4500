// Plans through the program, on device/cpu in single precision: losses to 1e-5, gradient norms to 1e-4 of one rank's.
// (The wide covers of plans are in tests/numerics, where a run costs no start of processes.)
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <regex>

#include "framework/base/text.hpp"
#include "framework/launch/rank_environment.hpp"
#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

struct LaunchCase {
  int ranks;
  std::string settings;
};

bool is_near(double a, double b, double relative) {
  return std::abs(a - b) <= relative * std::abs(b);
}

struct ShownStep {
  std::string loss, tokens_per_second;
};

/// The step lines of the first rank's console.
std::map<int64_t, ShownStep> steps_on_console(const std::string& output) {
  static const std::regex pattern(R"(step: +(\d+)/6  loss: (\S+)  .*  tps: (\S+)  )");
  std::map<int64_t, ShownStep> steps;
  for (std::sregex_iterator at(output.begin(), output.end(), pattern), end; at != end; ++at)
    steps[std::stoll((*at)[1])] = {(*at)[2], (*at)[3]};
  return steps;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plans)

BOOST_AUTO_TEST_CASE(every_plan_trains_as_one_rank_does) {
  JobFolder job;
  job.launch(1, "one", degrees_text(1, 1, 1));
  auto expected = read_steps(job / "one/metrics.jsonl");
  BOOST_REQUIRE(expected.size() == 6u);
  int number = 0;
  for (const auto& [ranks, settings] : std::vector<LaunchCase>{
           {1, degrees_text(1, 1, 1) + "train.micro_batch_size=12"},
           {2, degrees_text(1, 2, 1)},
           {3, degrees_text(1, 1, 3) + "parallel.pipeline.split=[1,3,1]"},
           {4, degrees_text(2, 1, 2) + "parallel.schedule=gpipe parallel.zero_stage=0"},
           {4, degrees_text(1, 2, 2) + "parallel.sequence_parallel=false train.micro_batch_size=4"},
           {6, degrees_text(3, 2, 1)},
           {3, degrees_text(3, 1, 1) + "parallel.zero_stage=2 train.micro_batch_size=2"},
           {4, degrees_text(4, 1, 1) + "parallel.zero_stage=3 parallel.recompute=full train.micro_batch_size=1"},
           {8, degrees_text(2, 2, 2) + "comm.check_calls=true"},
           {4, "parallel.planner=heuristic train.micro_batch_size=auto"},
       }) {
    std::string run = "run" + std::to_string(++number);
    job.launch(ranks, run, settings);
    auto steps = read_steps(job / run + "/metrics.jsonl");
    BOOST_TEST(steps.size() == 6u);
    for (const auto& [step, line] : steps) {
      const auto& wanted = expected[step];
      BOOST_TEST(is_near(line["loss"], wanted["loss"], 1e-5), settings << " " << line.dump() << wanted.dump());
      BOOST_TEST(is_near(line["grad_norm"], wanted["grad_norm"], 1e-4),
                 settings << " " << line.dump() << wanted.dump());
      BOOST_TEST(line["tokens"] == wanted["tokens"]);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_console_shows_the_true_loss_and_rate_under_every_plan) {
  JobFolder job;
  job.launch(1, "one", degrees_text(1, 1, 1));
  const auto expected = read_steps(job / "one/metrics.jsonl");
  int number = 0;
  for (const auto& [ranks, settings] : std::vector<LaunchCase>{{1, degrees_text(1, 1, 1)},
                                                               {2, degrees_text(2, 1, 1)},
                                                               {2, degrees_text(1, 2, 1)},
                                                               {3, degrees_text(1, 1, 3)},
                                                               {4, degrees_text(2, 1, 2)}}) {
    const std::string run = "run" + std::to_string(++number);
    const auto shown = steps_on_console(job.launch(ranks, run, settings));
    BOOST_TEST(shown.size() == 6u, settings);
    for (const auto& [step, line] : read_steps(job / run + "/metrics.jsonl")) {
      const auto at = shown.find(step);
      BOOST_REQUIRE_MESSAGE(at != shown.end(), settings << ": step " << step << " is not shown");
      BOOST_TEST(at->second.loss == fmt::format("{:.4f}", line["loss"].get<double>()), settings);
      BOOST_TEST(std::abs(std::stod(at->second.loss) - expected.at(step)["loss"].get<double>()) < 1e-3, settings);
      // Of all ranks together: 12 samples of 16 tokens, however many ranks there are.
      BOOST_TEST(line["tokens"] == 12 * 16);
      BOOST_TEST(is_near(line["tps"].get<double>() * line["seconds"].get<double>(), 12 * 16, 1e-9), line.dump());
      BOOST_TEST(at->second.tokens_per_second == with_thousands(static_cast<int64_t>(line["tps"].get<double>())));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_same_plan_twice_gives_the_same_bits) {
  JobFolder job;
  for (const char* run : {"a", "b"}) job.launch(4, run, degrees_text(2, 2, 1));
  BOOST_TEST(differing_tensors(job.checkpoint("a", 6), job.checkpoint("b", 6)) == "");
}

BOOST_AUTO_TEST_CASE(ranks_share_the_processors_and_the_banner_says_so) {
  JobFolder job;
  const std::string task = "SLURM_JOB_ID=4 SLURM_JOB_NODELIST=here SLURM_TASKS_PER_NODE=1 SLURM_CPUS_PER_TASK=2";
  const int share = threads_per_rank(num_usable_cpus(), 2);
  int number = 0;
  for (const auto& [environment, expected] : {std::pair<std::string, int>{"-u OMP_NUM_THREADS", share},
                                              {"-u OMP_NUM_THREADS " + task, 1},
                                              {"OMP_NUM_THREADS=3", 3},
                                              {"OMP_NUM_THREADS=3 " + task, 3}}) {
    const std::string name = "run" + std::to_string(++number);
    BackgroundRun run(job, job.launch_arguments(2, name, "device.threads=auto train.max_steps=1"), name, environment);
    BOOST_TEST(run.wait() == 0, run.output());
    const std::string shown = fmt::format("), {} thread{} a rank\n", expected, expected == 1 ? "" : "s");
    BOOST_TEST(run.output().find(shown) != std::string::npos, environment << ": " << run.output());
  }
}

BOOST_AUTO_TEST_CASE(a_process_alone_trains_without_a_launcher) {
  JobFolder job;
  auto alone = job.altiplano("train -c job.yaml --set run.dir=alone");
  BOOST_TEST(alone.exit_code == 0, alone.output);
  job.launch(1, "launched", "");
  BOOST_TEST(differing_tensors(job.checkpoint("alone", 6), job.checkpoint("launched", 6)) == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
