// Through the program: N steps, stop, N more are 2N steps; under the same plan with the same bits, under any other with
// the same numbers. Each run is the ranks' own processes over comm/shm.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>

#include "framework/base/text.hpp"
#include "framework/checkpoint/restore.hpp"
#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

constexpr int kHalf = 3, kWhole = 2 * kHalf;

struct RankPlan {
  int data, tensor, pipeline;
  std::string more = "";
  int ranks() const { return data * tensor * pipeline; }
  std::string settings() const { return degrees_text(data, tensor, pipeline) + more; }
};

std::string up_to(int step) {
  return "train.max_steps=" + std::to_string(step) + " ";
}

/// What two numbers of the two runs may differ by.
struct Tolerance {
  double loss, weights;
};

/// fp64 on the reference: only the order of sums differs.
constexpr Tolerance kExact{1e-9, 1e-9};
/// fp32: losses to 1e-5. adamw divides each gradient by its own size, so a weight whose gradient is nothing but
/// rounding (a key's bias has none) may move the other way at the full rate in every step after the resume.
constexpr Tolerance kSingle{1e-5, 2 * kHalf * 2e-3};
/// bf16: products round to 2^-8, relative; the losses here are about 5.
constexpr Tolerance kHalfPrecision{1.0 / 256, 4 * kHalf * 2e-3};

/// Losses and rates of the steps, and the weights at the end.
void check_alike(const JobFolder& job, const std::string& run, const std::string& whole, const Tolerance& tolerance,
                 const std::string& name) {
  auto steps = read_steps(job / run + "/metrics.jsonl"), expected = read_steps(job / whole + "/metrics.jsonl");
  BOOST_TEST(steps.size() == size_t{kWhole}, name);
  for (const auto& [step, line] : steps) {
    double loss = line["loss"], wanted = expected[step]["loss"];
    BOOST_TEST(std::abs(loss - wanted) <= tolerance.loss * std::abs(wanted),
               name << " step " << step << ": " << loss << " " << wanted);
    BOOST_TEST(line["lr"] == expected[step]["lr"], name << " step " << step);
  }
  double difference = largest_difference_of_checkpoints(job.checkpoint(run, kWhole), job.checkpoint(whole, kWhole));
  BOOST_TEST(difference <= tolerance.weights, name << ": weights differ by " << difference);
}

void check_pair(const JobFolder& job, const RankPlan& before, const RankPlan& after, const std::string& precision,
                const Tolerance& tolerance) {
  static int number = 0;
  std::string run = "pair" + std::to_string(++number), name = before.settings() + "->" + after.settings();
  job.launch(before.ranks(), run, precision + up_to(kHalf) + before.settings());
  job.launch(after.ranks(), run, precision + up_to(kWhole) + after.settings(), "--resume must");
  check_alike(job, run, "one", tolerance, name);
}

const std::vector<std::pair<RankPlan, RankPlan>>& plan_pairs() {
  static const std::vector<std::pair<RankPlan, RankPlan>> pairs = {
      {{1, 1, 1}, {4, 1, 1, "train.micro_batch_size=1"}},
      {{4, 1, 1, "train.micro_batch_size=3"}, {1, 1, 1}},
      {{2, 1, 1}, {3, 1, 1}},
      {{2, 2, 1}, {2, 1, 2, "parallel.schedule=gpipe"}},  // the quickstart's pair
      {{1, 3, 1}, {3, 1, 1}},
      {{1, 1, 3}, {1, 2, 1, "parallel.sequence_parallel=false"}},
      {{1, 4, 1}, {3, 2, 1}},
      {{2, 1, 1, "parallel.zero_stage=1"}, {2, 1, 1, "parallel.zero_stage=0"}},
      {{2, 2, 1, "parallel.zero_stage=0"}, {2, 2, 1, "parallel.zero_stage=1"}},
      {{2, 1, 1, "parallel.zero_stage=2"}, {2, 2, 1, "parallel.zero_stage=3"}},
      {{3, 1, 1, "parallel.zero_stage=3"}, {1, 2, 1}},
      {{1, 2, 3}, {3, 1, 1}},
  };
  return pairs;
}

/// How many rows the tensors have that have thousands: the vocabulary's. Padding would be rows that no token has.
std::set<int64_t> rows_of_tables(const std::string& path) {
  auto checkpoint = Checkpoint::open(path, CheckLevel::kSizes);
  BOOST_REQUIRE_MESSAGE(checkpoint.is_ok(), checkpoint.status().to_string());
  std::set<int64_t> rows;
  for (const ShardRecord& shard : checkpoint->manifest().shards)
    for (const PartRecord& part : shard.parts)
      if (!part.global.empty() && part.global[0] > 1000) rows.insert(part.global[0]);
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(resume)

BOOST_AUTO_TEST_CASE(the_same_plan_goes_on_with_the_same_bits) {
  JobFolder job;
  int number = 0;
  for (const RankPlan& plan : {RankPlan{1, 1, 1}, RankPlan{2, 2, 1}, RankPlan{2, 1, 2, "train.precision=bf16"},
                               RankPlan{3, 1, 1, "parallel.zero_stage=0"}, RankPlan{1, 2, 2, "optimizer.name=sgd"},
                               RankPlan{3, 1, 1, "parallel.zero_stage=3"},
                               RankPlan{3, 1, 1, "data.validation.fraction=0.1 train.validate_every=2"}}) {
    std::string whole = "whole" + std::to_string(++number), halves = "halves" + std::to_string(number);
    job.launch(plan.ranks(), whole, up_to(kWhole) + plan.settings());
    job.launch(plan.ranks(), halves, up_to(kHalf) + plan.settings());
    job.launch(plan.ranks(), halves, up_to(kWhole) + plan.settings());
    BOOST_TEST(differing_tensors(job.checkpoint(whole, kWhole), job.checkpoint(halves, kWhole)) == "", plan.settings());
    auto expected = read_steps(job / whole + "/metrics.jsonl"), steps = read_steps(job / halves + "/metrics.jsonl");
    BOOST_TEST(steps.size() == size_t{kWhole});
    for (const auto& [step, line] : steps)
      for (const char* key : {"loss", "grad_norm", "lr", "tokens"})
        BOOST_TEST(line[key] == expected[step][key], plan.settings() << " step " << step << " " << key);
  }
}

BOOST_AUTO_TEST_CASE(any_other_plan_goes_on_within_single_precision) {
  JobFolder job;
  job.launch(1, "one", up_to(kWhole) + degrees_text(1, 1, 1));
  for (const auto& [before, after] : plan_pairs()) check_pair(job, before, after, "", kSingle);
}

BOOST_AUTO_TEST_CASE(any_other_plan_goes_on_with_the_same_numbers_in_double_precision) {
  JobFolder job;
  const std::string precision = "device.kind=reference train.precision=fp64 ";
  job.launch(1, "one", precision + up_to(kWhole) + degrees_text(1, 1, 1));
  // Every other pair; tests/numerics has more of them in double precision.
  for (size_t i = 1; i < plan_pairs().size(); i += 2)
    check_pair(job, plan_pairs()[i].first, plan_pairs()[i].second, precision, kExact);
}

BOOST_AUTO_TEST_CASE(bf16_goes_on_under_another_plan) {
  JobFolder job;
  const std::string precision = "train.precision=bf16 ";
  job.launch(1, "one", precision + up_to(kWhole) + degrees_text(1, 1, 1));
  check_pair(job, {2, 2, 1}, {2, 1, 2}, precision, kHalfPrecision);
  check_pair(job, {1, 1, 1}, {3, 1, 1}, precision, kHalfPrecision);
}

BOOST_AUTO_TEST_CASE(the_checkpoint_counts_the_samples_of_all_plans) {
  JobFolder job;
  job.launch(4, "run", up_to(2) + degrees_text(4, 1, 1) + "train.micro_batch_size=3");
  job.launch(2, "run", up_to(4) + degrees_text(2, 1, 1));
  job.launch(3, "run", up_to(6) + degrees_text(3, 1, 1));
  auto checkpoint = Checkpoint::open(job.checkpoint("run", 6), CheckLevel::kChecksums);
  BOOST_REQUIRE_MESSAGE(checkpoint.is_ok(), checkpoint.status().to_string());
  BOOST_TEST(checkpoint->manifest().info.samples_consumed == 6 * 12);
}

BOOST_AUTO_TEST_CASE(a_vocabulary_of_50257_comes_back_bit_by_bit_from_any_number_of_ranks_that_share_it) {
  JobFolder job;
  // Steps that change no weight, so that each checkpoint has what was loaded of the one before.
  const std::string settings =
      "model.vocab_size=50257 model.hidden_size=12 model.num_attention_heads=4 optimizer.name=sgd optimizer.lr=0 "
      "lr_scheduler.min_lr=0 train.global_batch_size=2 train.micro_batch_size=2 checkpoint.keep_last=0 ";
  int step = 0;
  for (int tensor : {1, 4, 2, 1}) {
    job.launch(tensor, "run", settings + up_to(++step) + degrees_text(1, tensor, 1));
    // Momenta (".m") are those of the step's own samples.
    for (const auto& name : split(differing_tensors(job.checkpoint("run", step), job.checkpoint("run", 1)), ' '))
      BOOST_TEST((name.empty() || name.ends_with(".m")), tensor << " ranks: " << name << " differs");
    BOOST_TEST(rows_of_tables(job.checkpoint("run", step)) == std::set<int64_t>{50257},
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(all_ranks_leave_out_a_checkpoint_that_the_first_finds_damaged) {
  JobFolder job;
  const std::string plan = degrees_text(2, 1, 1);
  job.launch(2, "run", up_to(4) + plan + "checkpoint.every_steps=2");
  job.launch(2, "expected", up_to(4) + plan);
  std::string shard = job.checkpoint("run", 4) + "/rank-0000.h5";
  flip_bit(shard, std::filesystem::file_size(shard) / 2);
  std::string output = job.launch(2, "run", up_to(4) + plan);
  BOOST_TEST(output.find("step-00000004 skipped: ") != std::string::npos, output);
  BOOST_TEST(output.find("resumed   from step 2 ") != std::string::npos, output);
  BOOST_TEST(differing_tensors(job.checkpoint("run", 4), job.checkpoint("expected", 4)) == "");
  BOOST_TEST(read_steps(job / "run/metrics.jsonl").size() == 4u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
