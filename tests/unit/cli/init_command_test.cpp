// A first job as a newcomer gets it: written, checked, run by its own script, compared, replayed.
#include <boost/test/unit_test.hpp>

#include "tests/support/contains.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace altiplano::test;

namespace {

/// A folder with what `altiplano init` writes.
class FirstJob {
 public:
  FirstJob() {
    auto made = run("altiplano init gpt --ranks 2");
    BOOST_REQUIRE_MESSAGE(made.exit_code == 0, made.output);
  }
  CommandResult run(const std::string& command) const {
    return run_command("cd '" + folder_.path().string() +
                       "' && export PATH=" ALTIPLANO_BINARY_DIR
                       "/bin:$PATH && unset ALTIPLANO_PLUGIN_PATH SLURM_SUBMIT_DIR SLURM_JOB_ID && " +
                       command);
  }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryDirectory folder_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_first_job_is_valid_and_every_key_stands_in_it) {
  FirstJob job;
  auto valid = job.run("altiplano validate -n 2 -c gpt.yaml");
  BOOST_TEST(valid.exit_code == 0, valid.output);
  BOOST_TEST(valid.output.starts_with("ok: "), valid.output);
  const std::string text = read_bytes(job / "gpt.yaml");
  for (const char* part : {"\n  num_hidden_layers: 4\n", "\n  # activation_function: gelu_new\n", "\n# comm:\n",
                           "\n  # Decay rates of adamw's two moments."})
    BOOST_TEST(contains(text, part), part);
}

BOOST_AUTO_TEST_CASE(a_first_job_is_valid_for_any_number_of_ranks) {
  TemporaryDirectory folder;
  for (int ranks = 1; ranks <= 16; ranks += every(7)) {
    const auto result = run_command(fmt::format("cd '{0}' && export PATH=" ALTIPLANO_BINARY_DIR
                                                "/bin:$PATH && unset ALTIPLANO_PLUGIN_PATH && "
                                                "altiplano init --folder of{1} -n {1} && cd of{1} && "
                                                "altiplano validate -n {1} -c gpt.yaml",
                                                folder.path().string(), ranks));
    BOOST_TEST(result.exit_code == 0, ranks << " ranks: " << result.output);
  }
}

BOOST_AUTO_TEST_CASE(a_first_job_suits_its_data_or_is_refused_with_the_numbers) {
  FirstJob job;
  for (int bytes : {80, 81, 200, 1000, 5000, 40000}) {
    write_bytes(job / "some.txt", std::string(static_cast<size_t>(bytes), 'x'));
    const auto made = job.run(
        "rm -rf some some.h5 && altiplano data pack -o some.h5 some.txt >/dev/null && "
        "altiplano init --data some.h5 --folder some -n 3");
    if (bytes == 80) {
      BOOST_TEST(made.exit_code == 2);
      BOOST_TEST(contains(made.output, "has 80 tokens, a first job on 3 ranks needs 81: a step takes 3 samples of 8"),
                 made.output);
      BOOST_TEST(!std::filesystem::exists(job / "some"));
      continue;
    }
    BOOST_TEST_REQUIRE(made.exit_code == 0, bytes << ": " << made.output);
    const auto valid = job.run("cd some && altiplano validate -n 3 -c gpt.yaml");
    BOOST_TEST(valid.exit_code == 0, bytes << ": " << valid.output);
  }
}

BOOST_AUTO_TEST_CASE(files_of_an_earlier_first_job_are_kept) {
  FirstJob job;
  write_bytes(job / "gpt.yaml", "mine");
  auto again = job.run("altiplano init gpt");
  BOOST_TEST(again.exit_code == 2);
  BOOST_TEST(contains(again.output, "gpt.sbatch, ./data/sample.txt, ./data/sample.h5: already there"), again.output);
  BOOST_TEST(read_bytes(job / "gpt.yaml") == "mine");
}

BOOST_AUTO_TEST_CASE(the_script_of_a_first_job_runs_it_and_the_run_keeps_its_provenance) {
  FirstJob job;
  auto trained =
      job.run("bash gpt.sbatch --set train.max_steps=2 --set train.validate_every=0 --set lr_scheduler.warmup_steps=1");
  BOOST_TEST_REQUIRE(trained.exit_code == 0, trained.output);
  BOOST_TEST(contains(trained.output, "done      2 steps"), trained.output);
  const std::string start = read_bytes(job / "runs/gpt/provenance/0001/start.yaml");
  for (const char* part : {"ranks: 2\n", "\"train\", \"-c\", \"gpt.yaml\"", "launched_by: [",
                           "\"launch\", \"-n\", \"2\"", "plan_file: none\n", "commit: "})
    BOOST_TEST(contains(start, part), part << " in " << start);
  BOOST_TEST(read_bytes(job / "runs/gpt/provenance/0001/job.yaml") == read_bytes(job / "gpt.yaml"));

  auto compared = job.run("altiplano config diff runs/gpt gpt.yaml");
  BOOST_TEST(contains(compared.output, "train.max_steps: 2 -> 200  # "), compared.output);
  BOOST_TEST(contains(compared.output, "train.validate_every: 0 -> 50  # "), compared.output);

  auto replayed = job.run(
      "altiplano validate -n 2 -c runs/gpt/provenance/0001/effective.yaml --plan runs/gpt/provenance/0001/plan.yaml");
  BOOST_TEST(replayed.exit_code == 0, replayed.output);
  BOOST_TEST(!contains(replayed.output, "note:"), replayed.output);
}

BOOST_AUTO_TEST_CASE(what_to_do_next_is_printed_as_a_shell_takes_it) {
  FirstJob job;
  auto trained = job.run(
      "mv gpt.yaml 'my job.yaml' && altiplano train -c 'my job.yaml' --set train.max_steps=1 --set run.dir=\"it's\"");
  BOOST_TEST_REQUIRE(trained.exit_code == 0, trained.output);
  BOOST_TEST(contains(trained.output, "altiplano generate -c 'my job.yaml' --set 'run.dir=it'\\''s' --prompt"),
             trained.output);
}

BOOST_AUTO_TEST_CASE(a_plan_of_another_cluster_is_run_with_a_note) {
  FirstJob job;
  BOOST_TEST(job.run("altiplano plan -n 2 -c gpt.yaml -o plan.yaml").exit_code == 0);
  auto same = job.run("altiplano validate -n 2 -c gpt.yaml --plan plan.yaml");
  BOOST_TEST(!contains(same.output, "note:"), same.output);
  auto other = job.run("altiplano validate -n 2 -c gpt.yaml --plan plan.yaml --set cluster=a100-40-8");
  BOOST_TEST(other.exit_code == 0, other.output);
  BOOST_TEST(contains(other.output, "note: plan.yaml:3:"), other.output);
  BOOST_TEST(contains(other.output, "cluster.fingerprint: the plan was made for "), other.output);
}

BOOST_AUTO_TEST_CASE(own_data_is_used_with_its_vocabulary) {
  FirstJob job;
  auto made = job.run("altiplano init gpt --folder other --data data/sample.h5 && cat other/gpt.yaml && ls other");
  BOOST_TEST_REQUIRE(made.exit_code == 0, made.output);
  BOOST_TEST(contains(made.output, "/data/sample.h5\n"), made.output);
  BOOST_TEST(contains(made.output, "vocab_size: 257\n"), made.output);
  BOOST_TEST(!contains(made.output, "sample.txt"), made.output);
}
