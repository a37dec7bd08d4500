// Plans through the program, on device/cpu in single precision: losses to 1e-5, gradient norms to 1e-4 of one rank's.
// (The wide covers of plans are in tests/numerics, where a run costs no start of processes.)
#include <boost/test/unit_test.hpp>
#include <cmath>

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
           {8, degrees_text(2, 2, 2)},
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

BOOST_AUTO_TEST_CASE(the_same_plan_twice_gives_the_same_bits) {
  JobFolder job;
  for (const char* run : {"a", "b"}) job.launch(4, run, degrees_text(2, 2, 1));
  BOOST_TEST(differing_tensors(job.checkpoint("a", 6), job.checkpoint("b", 6)) == "");
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
