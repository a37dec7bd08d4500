// A resume after something has changed, a disk that is full or fills up, a death in the middle of a save: through the
// program.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "framework/base/quantity.hpp"
#include "framework/checkpoint/restore.hpp"
#include "tests/support/faults.hpp"
#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

std::string steps_up_to(int step) {
  return "train.max_steps=" + std::to_string(step) + " ";
}

void check_says(const CommandResult& result, int exit_code, const std::string& part) {
  BOOST_TEST(result.exit_code == exit_code, result.output);
  BOOST_TEST(result.output.find(part) != std::string::npos, "'" << part << "' is not in: " << result.output);
}

CommandResult resume(const JobFolder& job, const std::string& settings, int ranks = 1) {
  return job.altiplano(job.launch_arguments(ranks, "run", settings, "--resume must"));
}

CommandResult launch_with(const JobFolder& job, const Fault& fault, int ranks, const std::string& run,
                          const std::string& settings) {
  return run_command("cd " + job.path() + " && " + fault_environment(fault) + "timeout -k 5 120 " +
                     ALTIPLANO_BINARY_DIR "/bin/altiplano " + job.launch_arguments(ranks, run, settings));
}

Fault fault_in(const JobFolder& job, const std::string& mode, int at) {
  return {.directory = job / "run/checkpoints", .mode = mode, .at = at};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_care)

BOOST_AUTO_TEST_CASE(what_the_saved_state_cannot_go_on_with_is_refused_with_both_values) {
  JobFolder job;
  job.launch(1, "run", steps_up_to(2));
  check_says(resume(job, steps_up_to(4) + "optimizer.name=sgd"), 2,
             "\n  --set optimizer.name: now sgd, was adamw: the saved state is that of the other update rule");
  check_says(resume(job, steps_up_to(4) + "train.precision=bf16"), 2,
             "\n  --set train.precision: now bf16, was fp32: ");
  check_says(resume(job, steps_up_to(4) + "model.frozen=[embedding.token.weight]"), 2,
             "\n  --set model.frozen: now [embedding.token.weight], was []: ");
  check_says(resume(job, steps_up_to(4) + "model.num_hidden_layers=2"), 2,
             "\n  --set model.num_hidden_layers: got 2, expected 3");
  BOOST_TEST(read_steps(job / "run/metrics.jsonl").size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_legitimate_change_is_said_aloud_and_counts) {
  JobFolder job;
  job.launch(1, "run", steps_up_to(2));
  write_bytes(job / "other.txt", std::string(5000, 'x') + "other text");
  check_says(job.altiplano("data pack -o other.h5 other.txt"), 0, "tokens");
  auto result =
      resume(job, steps_up_to(3) + "optimizer.lr=4e-3 train.global_batch_size=8 data.train=other.h5 data.seed=5");
  check_says(result, 0,
             "note: resuming from step 2: --set optimizer.lr: now 0.004, was 0.002; the learning rate of step 3 is ");
  check_says(result, 0,
             "note: resuming from step 2: --set train.global_batch_size: now 8, was 12; the samples consumed");
  check_says(result, 0, "note: resuming from step 2: --set data.seed: now 5, was 1; ");
  check_says(result, 0, "note: resuming from step 2: data.train contents: now 5,010 tokens");
  auto steps = read_steps(job / "run/metrics.jsonl");
  BOOST_TEST(steps[3]["lr"].get<double>() > 1.5 * steps[2]["lr"].get<double>());
  auto checkpoint = Checkpoint::open(job.checkpoint("run", 3), CheckLevel::kChecksums);
  BOOST_TEST(checkpoint->manifest().info.samples_consumed == 2 * 12 + 8);
  BOOST_TEST(checkpoint->manifest().info.attempt == 2);
}

BOOST_AUTO_TEST_CASE(nothing_is_said_when_nothing_that_counts_has_changed) {
  JobFolder job;
  job.launch(2, "run", steps_up_to(2) + degrees_text(2, 1, 1));
  check_says(job.altiplano("data pack -o same.h5 text.txt"), 0, "tokens");
  auto result = resume(job, steps_up_to(4) + "data.train=same.h5 train.log_every=2 train.micro_batch_size=3");
  check_says(result, 0, "resumed   from step 2");
  BOOST_TEST(result.output.find("note: ") == std::string::npos, result.output);
}

BOOST_AUTO_TEST_CASE(more_steps_tell_the_learning_rate_by_the_old_and_the_new_schedule) {
  JobFolder job;
  const std::string derived = "lr_scheduler.decay_steps=auto ";
  job.launch(1, "run", steps_up_to(2) + derived);
  check_says(resume(job, steps_up_to(8) + derived), 0,
             "lr_scheduler.decay_steps: now 8, was 2; the learning rate of step 3 is ");
}

BOOST_AUTO_TEST_CASE(learning_rate_samples_and_epochs_go_on_under_another_plan) {
  JobFolder job;
  write_bytes(job / "short.txt", read_bytes(job / "text.txt").substr(0, 500));  // 31 samples: an epoch is 2.6 steps
  check_says(job.altiplano("data pack -o short.h5 short.txt"), 0, "tokens");
  const std::string data = "data.train=short.h5 ";
  job.launch(1, "whole", data + steps_up_to(7));
  job.launch(2, "run", data + steps_up_to(3) + degrees_text(2, 1, 1));
  job.launch(2, "run", data + steps_up_to(5) + degrees_text(1, 2, 1));
  job.launch(3, "run", data + steps_up_to(7) + degrees_text(1, 1, 3));
  auto steps = read_steps(job / "run/metrics.jsonl"), expected = read_steps(job / "whole/metrics.jsonl");
  BOOST_REQUIRE(steps.size() == 7u);
  for (auto& [step, line] : steps) {
    const double loss = line["loss"], wanted = expected[step]["loss"];
    BOOST_TEST(std::abs(loss - wanted) <= 1e-5 * wanted, "step " << step << ": " << loss << " " << wanted);
    BOOST_TEST(line["lr"] == expected[step]["lr"], "step " << step);
  }
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_full_during_a_save_costs_that_save_only) {
  JobFolder job;
  auto result = launch_with(job, fault_in(job, "ENOSPC", 20), 2, "run",
                            steps_up_to(6) + degrees_text(2, 1, 1) + "checkpoint.every_steps=2");
  check_says(result, 0, "): step 2 not saved: ");
  check_says(result, 0, "No space left on device");
  check_says(result, 0, "training goes on, the next save is at step 4");
  check_says(result, 0, "kept 4, 6");
  BOOST_TEST(!std::filesystem::exists(job.checkpoint("run", 2)));
  job.launch(2, "whole", steps_up_to(6) + degrees_text(2, 1, 1));
  BOOST_TEST(differing_tensors(job.checkpoint("run", 6), job.checkpoint("whole", 6)) == "");
}

BOOST_AUTO_TEST_CASE(a_disk_that_stays_full_fails_the_last_save_and_leaves_the_older_checkpoint) {
  JobFolder job;
  job.launch(2, "run", steps_up_to(2) + degrees_text(2, 1, 1));
  Fault fault = fault_in(job, "ENOSPC", 20);
  fault.stays = true;
  auto result = launch_with(job, fault, 2, "run", steps_up_to(4) + degrees_text(2, 1, 1));
  check_says(result, 1, "No space left on device");
  BOOST_TEST(differing_tensors(job.checkpoint("run", 2), job.checkpoint("run", 2)) == "");
  BOOST_TEST(!std::filesystem::exists(job.checkpoint("run", 4)));
  job.launch(2, "run", steps_up_to(4) + degrees_text(2, 1, 1), "--resume must");
}

BOOST_AUTO_TEST_CASE(a_rank_that_dies_in_the_middle_of_a_save_leaves_the_older_one_and_the_next_start_says_so) {
  JobFolder job;
  job.launch(2, "run", steps_up_to(2) + degrees_text(2, 1, 1));
  auto result = launch_with(job, fault_in(job, "kill", 30), 2, "run", steps_up_to(4) + degrees_text(2, 1, 1));
  check_says(result, 137, "was killed by signal 9");
  BOOST_REQUIRE(std::filesystem::exists(job / "run/checkpoints/.tmp-step-4.2"));
  const std::string output = job.launch(2, "run", steps_up_to(4) + degrees_text(2, 1, 1), "--resume must");
  BOOST_TEST(output.find(
                 "note: checkpoint step 4 skipped: run/checkpoints/.tmp-step-4.2: the save of step 4 never finished") !=
                 std::string::npos,
             output);
  BOOST_TEST(output.find("note: metrics.jsonl: 2 lines of steps after 2 removed") != std::string::npos, output);
  BOOST_TEST(!std::filesystem::exists(job / "run/checkpoints/.tmp-step-4.2"));
  BOOST_TEST(read_steps(job / "run/metrics.jsonl").size() == 4u);
}

BOOST_AUTO_TEST_CASE(another_beginning_in_a_run_s_folder_keeps_what_was_measured) {
  JobFolder job;
  job.launch(1, "run", steps_up_to(2) + degrees_text(1, 1, 1));
  const std::string output =
      job.launch(1, "run", steps_up_to(2) + degrees_text(1, 1, 1) + " checkpoint.dir=run/again", "--resume none");
  BOOST_TEST(output.find("of an earlier beginning set aside in run/metrics-1.jsonl") != std::string::npos, output);
  BOOST_TEST(read_steps(job / "run/metrics-1.jsonl").size() == 2u);
  BOOST_TEST(read_steps(job / "run/metrics.jsonl").size() == 2u);
}

BOOST_AUTO_TEST_CASE(space_is_counted_at_the_start_and_too_little_is_refused_or_told_with_the_numbers) {
  JobFolder job;
  auto refused = launch_with(job, {.directory = job / "run", .free_bytes = "100000"}, 1, "run", steps_up_to(4));
  check_says(refused, 2, "checkpoint.dir: run/checkpoints: one checkpoint takes ");
  check_says(refused, 2, "only 96.0 KiB are free there");
  auto told = launch_with(job, {.directory = job / "run", .free_bytes = "3000000"}, 1, "run",
                          steps_up_to(4) + "checkpoint.every_steps=1");
  check_says(told, 0, "note: checkpoint.dir: run/checkpoints: 4 more checkpoints of ");
  check_says(told, 0, "lower checkpoint.keep_last or keep_every, or free some space");
}

BOOST_AUTO_TEST_CASE(a_checkpoint_takes_no_more_than_the_banner_says) {
  JobFolder job;
  int number = 0;
  for (const std::string& settings :
       {degrees_text(1, 1, 1), degrees_text(2, 2, 1), degrees_text(2, 1, 2) + "train.precision=bf16",
        degrees_text(4, 1, 1) + "train.micro_batch_size=1", degrees_text(1, 4, 1) + "parallel.zero_stage=0",
        degrees_text(2, 1, 1) + "optimizer.name=sgd train.precision=bf16"}) {
    const std::string run = fmt::format("run{}", ++number);
    const int ranks = number == 1 ? 1 : number == 6 ? 2 : 4;
    const std::string output = job.launch(ranks, run, steps_up_to(1) + settings);
    const std::string before = run + "/checkpoints, at most ";
    const size_t at = output.find(before), end = output.find(" each", at);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos && end != std::string::npos, output);
    const auto said = parse_quantity(QuantityKind::kBytes, output.substr(at + before.size(), end - at - before.size()));
    BOOST_REQUIRE(said.has_value());
    uintmax_t taken = 0;
    for (const auto& file : std::filesystem::directory_iterator(job.checkpoint(run, 1))) taken += file.file_size();
    BOOST_TEST(static_cast<double>(taken) <= *said, settings);
    BOOST_TEST(*said < 2 * static_cast<double>(taken), settings);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
