// Data through the program: evaluation equals the run's own validation under any plan, mixes resume exactly, packed
// documents train, generated text is whole characters.
#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "framework/runtime/data/utf8.hpp"
#include "tests/support/faulty_job.hpp"

namespace altiplano::test {

namespace {

nlohmann::json evaluate(const JobFolder& job, const std::string& arguments) {
  auto result = job.altiplano("eval --json -c job.yaml " + arguments + " 2>eval.err");
  BOOST_REQUIRE_MESSAGE(result.exit_code == 0, arguments << ": " << result.output << read_bytes(job / "eval.err"));
  auto json = nlohmann::json::parse(result.output, nullptr, false);
  BOOST_REQUIRE_MESSAGE(json.is_object(), arguments << ": " << result.output);
  return json;
}

/// The validation of the run's last step.
nlohmann::json last_validation(const JobFolder& job, const std::string& run) {
  nlohmann::json last;
  for (const auto& line : read_metrics(job / run + "/metrics.jsonl"))
    if (line.contains("validation_loss")) last = line;
  BOOST_REQUIRE(last.is_object());
  return last;
}

/// Two more files: one text of 3001 bytes, and many short documents.
void pack_more(const JobFolder& job) {
  write_bytes(job / "a.txt", std::string(3000, 'a') + "\n");
  write_bytes(job / "b.txt", "short\n");
  write_bytes(job / "c.txt", std::string(40, 'c'));
  std::string many = "-o many.h5";
  for (int i = 0; i < 40; ++i) many += " b.txt c.txt";
  for (const std::string& arguments : {std::string("-o other.h5 a.txt"), many}) {
    auto packed = job.altiplano("data pack " + arguments);
    BOOST_REQUIRE_MESSAGE(packed.exit_code == 0, packed.output);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_evaluation_is_the_runs_own_validation_under_any_plan) {
  JobFolder job;
  const std::string settings = "data.validation.fraction=0.1 train.validate_every=6 train.validation_batches=100";
  job.launch(2, "run", settings + " parallel.data_parallel_size=2");
  const nlohmann::json own = last_validation(job, "run");
  const std::string of_run = "--set run.dir=run --set data.validation.fraction=0.1 ";
  const nlohmann::json same = evaluate(job, of_run + "-n 2 --set parallel.data_parallel_size=2");
  BOOST_TEST(same["loss"].get<double>() == own["validation_loss"].get<double>());  // the same plan: the same bits
  BOOST_TEST(same["tokens"] == own["validation_tokens"]);
  BOOST_TEST(same["step"] == 6);
  for (const char* plan :
       {"", "-n 2 --set parallel.tensor_parallel_size=2", "-n 2 --set parallel.pipeline_parallel_size=2"}) {
    const nlohmann::json other = evaluate(job, of_run + plan);
    BOOST_TEST(std::abs(other["loss"].get<double>() - own["validation_loss"].get<double>()) < 1e-5, plan);
    BOOST_TEST(other["tokens"] == own["validation_tokens"]);
  }
  // One byte is one token here, and no label is an end of text.
  const double bits = same["loss"].get<double>() / std::log(2.0);
  BOOST_TEST(std::abs(same["bits_per_byte"].get<double>() - bits) < 1e-12);
  BOOST_TEST(std::abs(same["perplexity"].get<double>() - std::exp(same["loss"].get<double>())) < 1e-9);
  BOOST_TEST((evaluate(job, of_run) == evaluate(job, of_run)));
}

BOOST_AUTO_TEST_CASE(an_evaluation_of_a_file_counts_every_token_but_the_first) {
  JobFolder job;
  pack_more(job);
  job.launch(1, "run", "train.max_steps=1");
  const nlohmann::json result = evaluate(job, "--set run.dir=run --file other.h5");
  BOOST_TEST(result["tokens"] == 3000);
  BOOST_TEST(result["text_bytes"] == 3000);
  BOOST_TEST(evaluate(job, "--set run.dir=run --file many.h5 --batches 1")["tokens"] == 12 * 16);
  // What the job says of its own validation is not needed for a file.
  BOOST_TEST((evaluate(job, "--set run.dir=run --file other.h5 --set train.validate_every=2") == result));
  BOOST_TEST((evaluate(job,
                       "-n 2 --set run.dir=run --file other.h5 --set train.validate_every=2 "
                       "--set data.validation.fraction=0.9999999")["tokens"] == 3000));
  auto missing = job.altiplano("eval -c job.yaml --set run.dir=run");
  BOOST_TEST(missing.exit_code == 2);
  BOOST_TEST(missing.output ==
             "error: job.yaml: the job has no validation data; give --file FILE, or set data.validation.fraction or "
             "data.validation.file\n");
}

BOOST_AUTO_TEST_CASE(a_mix_of_packed_documents_resumes_with_the_same_bits_and_trains_alike_under_another_plan) {
  JobFolder job;
  pack_more(job);
  std::string text = read_bytes(job / "job.yaml");
  const std::string line = "data: {train: text.h5}";
  text.replace(text.find(line), line.size(),
               "data: {train: [{path: text.h5, weight: 3}, {path: other.h5, weight: 1}, many.h5], documents: packed}");
  write_bytes(job / "job.yaml", text);
  job.launch(1, "whole", "train.max_steps=6");
  job.launch(1, "half", "train.max_steps=3");
  job.launch(1, "half", "train.max_steps=6", "--resume must");
  BOOST_TEST(differing_tensors(job.checkpoint("whole", 6), job.checkpoint("half", 6)) == "");
  job.launch(4, "four", "train.max_steps=6 parallel.tensor_parallel_size=2 parallel.pipeline_parallel_size=2");
  auto one = read_steps(job / "whole/metrics.jsonl"), four = read_steps(job / "four/metrics.jsonl");
  for (const auto& [step, metrics] : one)
    BOOST_TEST(std::abs(metrics["loss"].get<double>() - four[step]["loss"].get<double>()) < 1e-4, "step " << step);
  // Without the option the same samples are another training.
  job.launch(1, "crossing", "train.max_steps=1 data.documents=concatenate");
  auto crossing = read_steps(job / "crossing/metrics.jsonl");
  BOOST_TEST(std::abs(crossing[1]["loss"].get<double>() - one[1]["loss"].get<double>()) > 1e-6);
}

BOOST_AUTO_TEST_CASE(generated_text_is_whole_characters_whatever_the_model_says) {
  JobFolder job;
  job.launch(1, "run", "train.max_steps=1");
  for (const char* arguments : {"--temperature 5 --seed 1", "--temperature 100 --seed 2 --prompt ''"}) {
    auto result = job.altiplano("generate -c job.yaml --set run.dir=run --max-new-tokens 120 " +
                                std::string(arguments) + " 2>generate.err");
    BOOST_TEST(result.exit_code == 0, result.output << read_bytes(job / "generate.err"));
    Utf8Check check;
    check.take(result.output);
    BOOST_TEST(!check.first_invalid().has_value(), result.output);
    BOOST_TEST(result.output.find("\uFFFD") != std::string::npos, result.output);  // it did say bytes that are no text
  }
}

BOOST_AUTO_TEST_CASE(two_jobs_train_at_once_on_data_that_nobody_may_write) {
  if (!SmallDisk::is_possible()) return;
  JobFolder job;
  std::filesystem::create_directories(job / "data");
  std::filesystem::rename(job / "text.h5", job / "data/text.h5");
  const std::string settings = "data.train=data/text.h5 parallel.data_parallel_size=2";
  const std::string environment =
      "unshare -m sh -c 'mount --bind data data && mount -o remount,bind,ro data && ! touch data/x && exec \"$@\"' sh";
  BackgroundRun a(job, job.launch_arguments(2, "a", settings), "a", environment),
      b(job, job.launch_arguments(2, "b", settings), "b", environment);
  BOOST_TEST(a.wait() == 0, a.output());
  BOOST_TEST(b.wait() == 0, b.output());
  BOOST_TEST(differing_tensors(job.checkpoint("a", 6), job.checkpoint("b", 6)) == "");
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(job / "data"), {}) == 1);
}

BOOST_AUTO_TEST_CASE(packing_that_is_stopped_leaves_nothing_and_packing_that_was_killed_is_tidied_up_by_the_next) {
  JobFolder job;
  std::filesystem::resize_file(job / "text.txt", uintmax_t{1} << 33);  // a hole: long, and small on the disk
  std::filesystem::create_directory(job / "out");
  const auto num_files = [&] { return std::distance(std::filesystem::directory_iterator(job / "out"), {}); };
  for (int number : {SIGTERM, SIGINT, SIGKILL}) {
    BackgroundRun pack(job, "data pack --deflate 9 -o out/long.h5 text.txt", "pack");
    wait_until([&] { return num_files() == 1; }, "the temporary file");
    ::kill(pack.launcher(), number);
    BOOST_TEST(pack.wait() == 128 + number);
    BOOST_TEST(num_files() == (number == SIGKILL ? 1 : 0), number);
  }
  std::filesystem::resize_file(job / "text.txt", 1000);
  BOOST_TEST(job.altiplano("data pack -o out/long.h5 text.txt").exit_code == 0);
  BOOST_TEST(num_files() == 1);
  BOOST_TEST(std::filesystem::exists(job / "out/long.h5"));
}

}  // namespace altiplano::test
