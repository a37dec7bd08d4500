// A long run: the resident size of every rank is the same at step 2,500 as at step 500.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

/// What the process itself fills: the system takes pages of files (program, libraries) away and back as it likes.
int64_t resident_bytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  int64_t bytes = 0;
  for (std::string word; file >> word;) {
    int64_t kib = 0;
    if ((word == "RssAnon:" || word == "RssShmem:") && file >> kib) bytes += kib << 10;
  }
  return bytes;
}

int64_t steps_done(const JobFolder& job) {
  auto lines = read_metrics(job / "run/metrics.jsonl");
  return lines.empty() ? 0 : lines.back()["step"].get<int64_t>();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(flat_memory)

BOOST_AUTO_TEST_CASE(memory_does_not_grow_over_two_thousand_steps) {
  JobFolder job;
  BackgroundRun run(job,
                    job.launch_arguments(2, "run",
                                         "train.max_steps=1000000 checkpoint.every_steps=100 train.log_every=100 "
                                         "data.validation.fraction=0.1 train.validate_every=50" +
                                             degrees_text(2, 1, 1)),
                    "run");
  // Until the allocator has what a few saves need.
  wait_until([&] { return steps_done(job) >= 500; }, "step 500");
  int64_t before[] = {resident_bytes(run.rank(0)), resident_bytes(run.rank(1))};
  wait_until([&] { return steps_done(job) >= 2500; }, "step 2500");
  for (int rank : {0, 1}) {
    int64_t after = resident_bytes(run.rank(rank));
    BOOST_TEST_MESSAGE("rank " << rank << ": " << before[rank] << " bytes at step 500, " << after << " at step 2500");
    BOOST_REQUIRE(before[rank] > 0);
    // 1 MiB: the allocator's own play around saves, about 600 bytes a step.
    BOOST_TEST(after - before[rank] <= 1 << 20);
  }
}

BOOST_AUTO_TEST_CASE(memory_does_not_grow_over_twenty_thousand_tiny_steps) {
  JobFolder job;
  const std::string tiny =
      "model.num_hidden_layers=1 model.hidden_size=8 model.num_attention_heads=1 train.seq_length=4 "
      "train.global_batch_size=2 train.micro_batch_size=1 train.max_steps=1000000 train.log_every=1000";
  BackgroundRun run(job, job.launch_arguments(2, "run", tiny + degrees_text(2, 1, 1)), "run");
  const auto wait_for = [&](const std::string& step) {
    for (int i = 0; i < 3600 && run.output().find("step: " + step + "/") == std::string::npos; ++i) {
      BOOST_REQUIRE_MESSAGE(!run.has_ended(), run.output());
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  };
  wait_for("   1000");
  const int64_t before[] = {resident_bytes(run.rank(0)), resident_bytes(run.rank(1))};
  wait_for("  20000");
  for (int rank : {0, 1}) {
    const int64_t after = resident_bytes(run.rank(rank));
    BOOST_TEST_MESSAGE("rank " << rank << ": " << before[rank] << " bytes at step 1,000, " << after << " at 20,000");
    BOOST_REQUIRE(before[rank] > 0);
    BOOST_TEST(after - before[rank] <= 256 << 10);  // 14 bytes a step
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
