// What a user types and reads: plan files, refusals with their exit codes, generation, the examples of --help.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/contains.hpp"
#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

/// The plan's text but for its last line, the predicted numbers.
std::string without_prediction(const std::string& plan) {
  return plan.substr(0, plan.find("predicted: "));
}

/// Refused with this code, in less than a second, with these parts in the message, and before a rank has started.
void check_refused(const JobFolder& job, const std::string& arguments, int code,
                   const std::vector<std::string>& parts) {
  auto start = std::chrono::steady_clock::now();
  auto result = job.altiplano(arguments);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  BOOST_TEST(result.exit_code == code, arguments << ": " << result.output);
  for (const auto& part : parts)
    BOOST_TEST(contains(result.output, part), arguments << ": no '" << part << "' in " << result.output);
  BOOST_TEST(!contains(result.output, "rank 1:"), "every rank says it: " << result.output);
  BOOST_TEST(!std::filesystem::exists(job / "refused"), arguments << ": ranks were started");
  BOOST_TEST_MESSAGE("refused in " << seconds << " s: " << result.output);
}

std::string refused(int ranks, const JobFolder& job, const std::string& settings, const std::string& more = "") {
  return job.launch_arguments(ranks, "refused", settings, more);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(commands)

BOOST_AUTO_TEST_CASE(profile_says_where_the_time_of_a_step_goes_and_leaves_no_run) {
  JobFolder job;
  const auto arguments = [&](int ranks) {
    return job.plan_arguments(ranks, "run.dir=profiled " + degrees_text(2, 1, 2)).replace(0, 4, "profile");
  };
  for (const char* form : {"", " --json"}) {
    auto result = job.altiplano(arguments(4) + " --steps 2" + form);
    BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.output);
    const bool is_json = *form != '\0';  // which folds no small rows
    for (const char* part : {"matmul", "packed_attention_grad", "all_reduce", "send", "adamw", "between instructions"})
      BOOST_TEST((!is_json || contains(result.output, part)), part << " is not in " << result.output);
    for (const char* group : {"computed", "moved within the rank", "exchanged with other ranks, or waited for them"})
      BOOST_TEST(contains(result.output, group), group << " is not in " << result.output);
    BOOST_TEST(contains(result.output, " more ") != is_json, result.output);
  }
  BOOST_TEST(!std::filesystem::exists(job / "profiled/checkpoints"));
  BOOST_TEST(!std::filesystem::exists(job / "profiled/metrics.jsonl"));
  auto refusal = job.altiplano(arguments(3));
  BOOST_TEST(refusal.exit_code == 2, refusal.output);
  BOOST_TEST(!contains(refusal.output, "rank 1:"), refusal.output);
}

BOOST_AUTO_TEST_CASE(a_plan_in_a_file_gives_the_bits_of_planning) {
  JobFolder job;
  const std::string plan = degrees_text(2, 1, 2);
  auto made = job.altiplano(job.plan_arguments(4, plan) + " -o plan.yaml");
  BOOST_REQUIRE_MESSAGE(made.exit_code == 0, made.output);
  job.launch(4, "planned", "train.max_steps=2 " + plan);
  std::string output = job.launch(4, "replayed", "train.max_steps=2", "--plan plan.yaml");
  BOOST_TEST(contains(output, "(read in "), output);
  BOOST_TEST(differing_tensors(job.checkpoint("planned", 2), job.checkpoint("replayed", 2)) == "");
}

BOOST_AUTO_TEST_CASE(the_plan_of_the_quickstart_reads_as_in_the_golden_file) {
  auto result = run_command("cd " ALTIPLANO_SOURCE_DIR " && " ALTIPLANO_BINARY_DIR
                            "/bin/altiplano plan -n 4 -c configs/jobs/quickstart.yaml");
  BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.output);
  std::string golden = read_bytes(ALTIPLANO_SOURCE_DIR "/tests/golden/plan_quickstart.yaml");
  BOOST_TEST(without_prediction(result.output) == golden);
  BOOST_TEST(contains(result.output, "\npredicted: {step_seconds: "));
}

BOOST_AUTO_TEST_CASE(validate_and_estimate_say_what_would_run) {
  JobFolder job;
  auto valid = job.altiplano("validate -n 4 -c job.yaml --set train.micro_batch_size=1");
  BOOST_TEST(valid.exit_code == 0, valid.output);
  BOOST_TEST(contains(valid.output, "ok: job.yaml on 4 ranks: data 4"), valid.output);
  BOOST_TEST(contains(valid.output, "4 programs with "), valid.output);
  const auto alone = job.altiplano("validate -c job.yaml --set train.micro_batch_size=1");
  BOOST_TEST(contains(alone.output, "ok: job.yaml on 1 rank: "), alone.output);
  BOOST_TEST(contains(alone.output, "; 1 program with "), alone.output);
  auto estimate = job.altiplano("estimate -n 4 -c job.yaml --set train.micro_batch_size=1");
  BOOST_TEST(estimate.exit_code == 0, estimate.output);
  BOOST_TEST(contains(estimate.output, "memory    fits: yes ("), estimate.output);
  for (const char* word : {"weights", "optimizer", "activations", "peak", "tokens/s"})
    BOOST_TEST(contains(estimate.output, word), estimate.output);
  BOOST_TEST(!std::filesystem::exists(job / "runs"));
}

BOOST_AUTO_TEST_CASE(mistakes_are_refused_once_at_once_with_the_rule_and_what_would_do) {
  JobFolder job;
  check_refused(job, refused(5, job, "parallel.tensor_parallel_size=5 train.global_batch_size=10"), 2,
                {"12", "1, 2, 3, 4, 6"});
  check_refused(job, refused(4, job, "train.global_batch_size=10" + degrees_text(4, 1, 1)), 2,
                {"train.global_batch_size",
                 "10 is not a multiple of micro_batch_size 2 x data_parallel_size 4 = 8; nearest: 8, 16"});
  check_refused(job, refused(2, job, "model.vocab_size=100"), 2, {"100", "257"});
  check_refused(job, refused(2, job, "train.global_batch_size=2000"), 2, {"2000", "samples of 16 tokens"});
  check_refused(job, refused(2, job, "train.seq_length=32"), 2, {"model.max_position_embeddings: 16 positions", "32"});
  check_refused(job, refused(2, job, "data.train=absent.h5"), 2, {"absent.h5"});
  check_refused(job, refused(2, job, "train.max_stepz=3"), 2, {"train.max_stepz", "did you mean max_steps?"});
  check_refused(job, refused(2, job, "", "--resum must"), 2, {"--resum"});
  check_refused(job, refused(2, job, "", "--resume must"), 4, {"refused/checkpoints"});
}

BOOST_AUTO_TEST_CASE(a_mistake_in_the_file_is_named_by_file_line_and_column) {
  JobFolder job;
  std::string text = read_bytes(job / "job.yaml");
  text.replace(text.find("global_batch_size: 12"), 21, "global_batch_size: 10");
  write_bytes(job / "job.yaml", text + "\n");
  check_refused(job, refused(4, job, "parallel.data_parallel_size=4"), 2,
                {"job.yaml:12:42: train.global_batch_size: 10 is not a multiple"});
}

BOOST_AUTO_TEST_CASE(a_plan_of_another_model_is_refused) {
  JobFolder job;
  BOOST_REQUIRE(job.altiplano("plan -n 2 -c job.yaml -o plan.yaml").exit_code == 0);
  check_refused(job, refused(2, job, "model.num_hidden_layers=2", "--plan plan.yaml"), 2, {"plan"});
  check_refused(job, refused(3, job, "", "--plan plan.yaml"), 2,
                {"stages: the plan has 2 slots, the job 3 ranks; start it with -n 2"});
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_model_is_refused_with_the_fields_that_differ) {
  JobFolder job;
  job.launch(2, "run", "train.max_steps=1");
  auto result = job.altiplano(job.launch_arguments(2, "run", "train.max_steps=2 model.hidden_size=24"));
  BOOST_TEST(result.exit_code == 2, result.output);
  BOOST_TEST(contains(result.output, "hidden_size"), result.output);
  BOOST_TEST(contains(result.output, "48"), result.output);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_the_smallest_change_and_that_fits) {
  JobFolder job;
  check_refused(
      job,
      refused(4, job, "memory.per_rank=1MiB train.micro_batch_size=1 parallel.zero_stage=1" + degrees_text(4, 1, 1)), 3,
      {"no feasible plan", "Smallest change that fits:"});
  auto result = job.altiplano(
      refused(4, job, "memory.per_rank=1MiB train.micro_batch_size=1 parallel.zero_stage=1" + degrees_text(4, 1, 1)));
  std::string change = result.output.substr(result.output.find("fits:\n") + 6);
  BOOST_TEST_MESSAGE(change);
  int zero = 0;  // "parallel.zero_stage: 3   (…)"
  BOOST_REQUIRE(std::sscanf(change.c_str(), " parallel.zero_stage: %d", &zero) == 1);
  job.launch(
      4, "fits",
      fmt::format("train.max_steps=1 memory.per_rank=1MiB train.micro_batch_size=1 parallel.zero_stage={}", zero) +
          degrees_text(4, 1, 1));
}

BOOST_AUTO_TEST_CASE(notices_are_printed_once) {
  JobFolder job;
  std::string output = job.launch(3, "run", "train.max_steps=1 optimizer.learning_rate=1e-3");
  const std::string notice = "note: --set optimizer.learning_rate: read as optimizer.lr\n";
  size_t at = output.find(notice);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, output);
  BOOST_TEST(output.find(notice, at + 1) == std::string::npos, output);
}

BOOST_AUTO_TEST_CASE(keys_that_a_given_plan_overrides_are_named_with_both_values) {
  JobFolder job;
  const std::string degrees = degrees_text(2, 1, 2);
  BOOST_REQUIRE(job.altiplano(job.plan_arguments(4, degrees) + " -o plan.yaml").exit_code == 0);
  const auto with = [&](const std::string& settings) {
    return job.altiplano(job.plan_arguments(4, settings).replace(0, 4, "validate") + " --plan plan.yaml").output;
  };
  const std::string overridden = with(degrees_text(2, 2, 1) + " parallel.schedule=gpipe parallel.zero_stage=0");
  BOOST_TEST(
      contains(overridden,
               "note: --plan plan.yaml is run as it stands; without effect: "
               "--set parallel.tensor_parallel_size 2 (the plan has 1), "
               "--set parallel.pipeline_parallel_size 1 (the plan has 2), "
               "--set parallel.zero_stage 0 (the plan has 1), --set parallel.schedule gpipe (the plan has 1f1b)\n"),
      overridden);
  BOOST_TEST(!contains(with(degrees), "without effect"), with(degrees));
}

BOOST_AUTO_TEST_CASE(an_empty_prompt_shows_no_mark_of_the_end_of_text) {
  JobFolder job;
  job.launch(1, "run", "train.max_steps=1" + degrees_text(1, 1, 1));
  const auto result =
      job.altiplano("generate -c job.yaml --set run.dir=run --prompt '' --max-new-tokens 4 2>/dev/null");
  BOOST_TEST(result.exit_code == 0, result.output);
  BOOST_TEST(!contains(result.output, "endoftext"), result.output);
}

BOOST_AUTO_TEST_CASE(generation_is_the_same_whatever_plan_saved_the_checkpoint) {
  JobFolder job;
  const std::string precision = " device.kind=reference train.precision=fp64";
  job.launch(1, "one", "train.max_steps=3" + degrees_text(1, 1, 1) + precision);
  job.launch(4, "four", "train.max_steps=3" + degrees_text(2, 1, 2) + precision);
  job.launch(3, "three", "train.max_steps=3" + degrees_text(1, 3, 1) + precision);
  auto text = [&](const std::string& run, const std::string& more = "") {
    auto result = job.altiplano(
        "generate -c job.yaml --set run.dir=" + run +
        " --set device.kind=reference --set train.precision=fp64 --prompt 'the river' --max-new-tokens 40 " + more +
        " 2>/dev/null");
    BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.output);
    return result.output;
  };
  std::string greedy = text("one");
  BOOST_TEST(greedy.starts_with("the river"));
  BOOST_TEST(greedy.size() > 20u);
  BOOST_TEST(text("one") == greedy);
  BOOST_TEST(text("four") == greedy);
  BOOST_TEST(text("three") == greedy);
  BOOST_TEST(text("one", "--temperature 1.5 --top-k 1") == greedy);
  std::string drawn = text("one", "--temperature 1.5 --seed 3");
  BOOST_TEST(drawn != greedy);
  BOOST_TEST(text("four", "--temperature 1.5 --seed 3") == drawn);
  BOOST_TEST(text("one", "--temperature 1.5 --seed 4") != drawn);
  BOOST_TEST(text("one", "--temperature 1.5 --seed 3 --top-k 2") != drawn);
  BOOST_TEST(text("one", "--checkpoint one/checkpoints/step-00000003") == greedy);
}

BOOST_AUTO_TEST_CASE(every_command_shows_examples_that_parse) {
  JobFolder job;
  auto help = [&](const std::string& command) {
    auto result = job.altiplano(command + " --help");
    BOOST_TEST(result.exit_code == 0, command);
    return result.output;
  };
  std::filesystem::create_directory(job / "my_plugins");  // a folder that some examples name must exist
  int examples = 0;
  for (const char* command :
       {"train",       "launch",       "plan",         "validate",      "estimate",    "generate",    "eval",
        "init",        "data",         "data pack",    "data inspect",  "ckpt",        "ckpt ls",     "ckpt inspect",
        "ckpt verify", "ckpt diff",    "ckpt prune",   "config",        "config show", "config diff", "config schema",
        "plugins",     "plugins list", "plugins info", "plugins check", "plugins new", "doctor"}) {
    std::istringstream lines(help(command));
    int here = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  altiplano ")) continue;
      ++here;
      // An option that is none is named before anything is done; an example itself must have no such mistake.
      auto wrong = job.altiplano(line.substr(12, line.find(" > ") - 12) + " --no-such-option");
      BOOST_TEST(wrong.exit_code == 2, line);
      BOOST_TEST(contains(wrong.output, "no-such-option"), line << ": " << wrong.output);
    }
    BOOST_TEST(here > 0, command << " shows no example");
    examples += here;
  }
  BOOST_TEST(examples >= 45);
}

BOOST_AUTO_TEST_CASE(outputs_replace_neither_their_inputs_nor_devices_and_lost_output_is_a_failure) {
  JobFolder job;
  write_bytes(job / "some.txt", "In the beginning");
  BOOST_TEST(job.altiplano("data pack -o some.txt some.txt").exit_code == 2);
  BOOST_TEST(read_bytes(job / "some.txt") == "In the beginning");
  BOOST_TEST(job.altiplano("data pack -o pipe some.txt").exit_code == 0);
  BOOST_TEST(job.altiplano("plan -n 2 -c job.yaml -o job.yaml").exit_code == 2);
  BOOST_TEST(job.altiplano("plan -n 2 -c job.yaml -o /dev/null").exit_code == 2);
  auto lost = job.altiplano("plan -n 2 -c job.yaml >/dev/full");
  BOOST_TEST(lost.exit_code == 1, lost.output);
  BOOST_TEST(contains(lost.output, "stdout: No space left on device"), lost.output);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
