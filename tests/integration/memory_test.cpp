// Memory of real ranks: what is predicted is what is allocated, and little else lies in memory.
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

/// Program, libraries, plugins and the window of the data file, next to a rank's buffers.
constexpr double kConstant = 64.0 * (1 << 20);

nlohmann::json memory_of(const JobFolder& job, const std::string& run, int rank) {
  return nlohmann::json::parse(read_bytes(job / run + "/memory-rank-" + std::to_string(rank) + ".json"));
}

/// The largest of the stages' peaks in the plan.
int64_t planned_peak(const JobFolder& job, int ranks, const std::string& settings) {
  auto plan = job.altiplano(job.plan_arguments(ranks, settings));
  const std::string key = "peak_memory_bytes: ";
  size_t at = plan.output.find(key);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, plan.output);
  auto peaks =
      nlohmann::json::parse(plan.output.substr(at + key.size(), plan.output.find(']', at) + 1 - at - key.size()));
  return *std::max_element(peaks.begin(), peaks.end());
}

void check_resident(const nlohmann::json& memory) {
  double predicted = memory["predicted"], resident = memory["resident_peak"];
  BOOST_TEST_MESSAGE("predicted " << predicted / (1 << 20) << " MiB, resident " << resident / (1 << 20) << " MiB");
  // Shared memory beyond the rank's own arenas is its peers', counted with them.
  const double of_peers = std::max(0.0, memory["resident_shared"].get<double>() - predicted);
  BOOST_TEST(resident - of_peers <= 1.1 * predicted + kConstant);
  BOOST_TEST(resident >= 0.9 * predicted);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory)

BOOST_AUTO_TEST_CASE(every_rank_allocates_what_was_predicted) {
  JobFolder job;
  const std::vector<std::pair<int, std::string>> cases = {
      {1, degrees_text(1, 1, 1)},
      {4, degrees_text(2, 2, 1)},
      {4, degrees_text(2, 1, 2) + "train.precision=bf16"},
      {6, degrees_text(1, 2, 3) + "parallel.schedule=gpipe"},
      {4, degrees_text(1, 4, 1) + "device.kind=reference train.precision=fp64"},
      {3, degrees_text(3, 1, 1) + "parallel.zero_stage=0 optimizer.name=sgd"},
      {3, degrees_text(3, 1, 1) + "parallel.zero_stage=2"},
      {4, degrees_text(2, 2, 1) + "parallel.zero_stage=3 train.precision=bf16"},
  };
  int number = 0;
  for (const auto& [ranks, plan] : cases) {
    std::string run = "run" + std::to_string(++number);
    job.launch(ranks, run, "train.max_steps=2 " + plan);
    int64_t largest = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      auto memory = memory_of(job, run, rank);
      BOOST_TEST(memory["rank"] == rank);
      BOOST_TEST(memory["predicted"].get<int64_t>() > 0);
      BOOST_TEST(memory["peak"] == memory["predicted"], plan << " rank " << rank << ": " << memory.dump());
      largest = std::max(largest, memory["peak"].get<int64_t>());
    }
    BOOST_TEST(planned_peak(job, ranks, plan) == largest, plan);
  }
}

BOOST_AUTO_TEST_CASE(a_rank_is_as_large_as_its_buffers_and_a_constant) {
  JobFolder job;
  const std::string large =
      "train.max_steps=2 train.global_batch_size=4 model.hidden_size=384 model.num_hidden_layers=8 ";
  job.launch(1, "one", large + degrees_text(1, 1, 1));
  BOOST_TEST(memory_of(job, "one", 0)["predicted"].get<double>() > 100.0 * (1 << 20));
  check_resident(memory_of(job, "one", 0));
  job.launch(1, "one", large + "train.max_steps=3 " + degrees_text(1, 1, 1), "--resume must");
  check_resident(memory_of(job, "one", 0));
  job.launch(2, "two", large + degrees_text(2, 1, 1));
  for (int rank : {0, 1}) check_resident(memory_of(job, "two", rank));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
