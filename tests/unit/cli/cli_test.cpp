// The program as a person starts it: output, last line of an error, exit code.
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "framework/base/text.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/cli/run_altiplano.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

const std::string kJob = ALTIPLANO_SOURCE_DIR "/configs/jobs/quickstart.yaml";

}  // namespace

BOOST_AUTO_TEST_CASE(usage_mistakes_exit_with_2_and_say_what_is_possible) {
  struct Mistake {
    const char *arguments, *message;
  };
  for (const auto& [arguments, message] : std::vector<Mistake>{
           {"", "error: no command; there is ckpt, config, data, doctor"},
           {"confg", "error: unknown command confg; did you mean config?"},
           {"config sho", "error: unknown command sho; did you mean show?"},
           {"config", "error: no command; there is show, diff, schema, reference"},
           {"config show", "error: missing: -c FILE, Job file (YAML)"},
           {"launch -c job.yaml", "error: missing: -n RANKS, Processes to start, one per device"},
           {"data pack a.txt", "error: missing: -o FILE, The file to write"},
           {"ckpt ls", "error: missing: path, A folder of checkpoints, or one checkpoint in it"},
           {"doctor --fast", "error: The following argument was not expected: --fast"},
       }) {
    auto result = run_altiplano(arguments);
    BOOST_TEST(result.exit_code == 2, arguments);
    BOOST_TEST(result.output.starts_with(message), result.output);
  }
}

BOOST_AUTO_TEST_CASE(every_help_page_has_examples) {
  for (const char* command :
       {"config", "config show", "config diff", "config schema", "config reference", "init", "doctor", "ckpt",
        "ckpt ls", "ckpt inspect", "ckpt verify", "data", "data pack", "data inspect"}) {
    auto result = run_altiplano(std::string(command) + " --help");
    BOOST_TEST(result.exit_code == 0);
    BOOST_TEST(contains(result.output, std::string("Examples:\n  altiplano ") + command), result.output);
  }
  BOOST_TEST(run_altiplano("--help").exit_code == 0);
}

BOOST_AUTO_TEST_CASE(help_as_a_command_shows_the_same_pages) {
  for (const char* command : {"", "launch", "ckpt ls", "config"}) {
    const auto asked = run_altiplano(std::string("help ") + command),
               page = run_altiplano(command + std::string(" --help"));
    BOOST_TEST(asked.exit_code == 0, asked.output);
    BOOST_TEST(asked.output == page.output, command);
  }
  const auto unknown = run_altiplano("help lanch");
  BOOST_TEST(unknown.exit_code == 2, unknown.output);
  BOOST_TEST(contains(unknown.output, "error: unknown command lanch; did you mean launch?"), unknown.output);
}

BOOST_AUTO_TEST_CASE(the_version_is_printed) {
  auto result = run_altiplano("--version");
  BOOST_TEST(result.exit_code == 0);
  BOOST_TEST(result.output.starts_with("altiplano 0."), result.output);
}

BOOST_AUTO_TEST_CASE(config_show_prints_a_job_file_that_means_the_same) {
  TemporaryDirectory folder;
  auto first = run_altiplano("config show -c " + kJob + " --set train.max_steps=70");
  BOOST_TEST_REQUIRE(first.exit_code == 0, first.output);
  BOOST_TEST(contains(first.output, "train.max_steps: 70\n"));
  BOOST_TEST(contains(first.output, "model.hidden_size: 128\n"));
  write_bytes(folder / "again.yaml", first.output);
  BOOST_TEST(run_altiplano("config show -c " + folder / "again.yaml").output == first.output);
}

BOOST_AUTO_TEST_CASE(config_show_says_where_each_value_comes_from) {
  auto result = run_altiplano("config show --origin -c " + kJob + " --set train.seed=7");
  BOOST_TEST_REQUIRE(result.exit_code == 0, result.output);
  auto origin_of = [&](const std::string& key) {
    for (const auto& line : split(result.output, '\n')) {
      if (line.starts_with(key + ":")) return line.substr(line.find("  # ") + 4);
    }
    return std::string("no such key");
  };
  BOOST_TEST(origin_of("train.seed") == "--set");
  BOOST_TEST(origin_of("model.kind") == kJob + ":6:9");
  BOOST_TEST(origin_of("train.precision") == "default");
  BOOST_TEST(origin_of("run.dir") == "from run.name");
}

BOOST_AUTO_TEST_CASE(config_show_lists_every_mistake_and_exits_with_2) {
  auto result = run_altiplano("config show -c " + kJob + " --set model.num_hiden_layers=3 --set train.seed=");
  BOOST_TEST(result.exit_code == 2);
  BOOST_TEST(result.output ==
             "error: --set model.num_hiden_layers: unknown key; did you mean num_hidden_layers?\n"
             "--set train.seed: empty value; leave it out to keep the job file's\n");
}

BOOST_AUTO_TEST_CASE(names_of_gpt2_configuration_files_are_read_with_a_note) {
  auto result = run_altiplano("config show -c " + kJob + " --set model.n_inner=64");
  BOOST_TEST(result.exit_code == 0);
  BOOST_TEST(contains(result.output, "note: --set model.n_inner: read as model.intermediate_size\n"));
  BOOST_TEST(contains(result.output, "model.intermediate_size: 64\n"));
}

BOOST_AUTO_TEST_CASE(every_job_file_of_the_tree_is_accepted) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ALTIPLANO_SOURCE_DIR "/configs/jobs")) {
    auto result = run_altiplano("config show -c " + entry.path().string());
    BOOST_TEST(result.exit_code == 0, result.output);
    BOOST_TEST(!contains(result.output, "note:"), result.output);
    ++files;
  }
  BOOST_TEST(files >= 2);
}

BOOST_AUTO_TEST_CASE(the_reference_page_in_the_tree_is_current) {
  auto result = run_altiplano("config reference");
  BOOST_TEST(result.exit_code == 0);
  BOOST_TEST((read_bytes(ALTIPLANO_SOURCE_DIR "/docs/reference/config.md") == result.output),
             "docs/reference/config.md is old; run: altiplano config reference > docs/reference/config.md");
}

BOOST_AUTO_TEST_CASE(doctor_names_the_machine_and_the_plugins) {
  auto result = run_altiplano("doctor");
  BOOST_TEST(result.exit_code == 0);
  for (const char* part :
       {"altiplano ", "compiler ", "hdf5 ", "cores ", "memory ", "shared ", "cpu ", "model/gpt", "schedule/1f1b"}) {
    BOOST_TEST(contains(result.output, part), part);
  }
}

BOOST_AUTO_TEST_CASE(doctor_says_the_versions_of_libraries_and_whether_they_are_those_built_with) {
  auto here = run_altiplano("doctor");
  BOOST_TEST(contains(here.output, "\ndevice    cpu ("), here.output);
  BOOST_TEST(contains(here.output, ", oneDNN "), here.output);
  BOOST_TEST(!contains(here.output, "install the matching pair"), here.output);
  const std::string other = "env -u ALTIPLANO_PLUGIN_PATH ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=" +
                            std::string(ALTIPLANO_BINARY_DIR "/fixtures/faults/other_versions.so ") +
                            ALTIPLANO_BINARY_DIR "/bin/altiplano ";
  auto elsewhere = run_command(other + "doctor");
  BOOST_TEST(elsewhere.exit_code == 0, elsewhere.output);
  for (const char* part :
       {"\nhdf5      1.10.99, but built with the headers of 1.", "oneDNN 1.2.3, but built with the headers of"})
    BOOST_TEST(contains(elsewhere.output, part), part << " in " << elsewhere.output);
  // A job with that HDF5 is refused, where HDF5 itself would abort.
  TemporaryDirectory folder;
  write_bytes(folder / "a.txt", "In the beginning");
  auto job = run_command(other + "data pack -o " + (folder / "a.h5") + " " + (folder / "a.txt"));
  BOOST_TEST(job.exit_code == 1, job.output);
  BOOST_TEST(contains(job.output, "error: the HDF5 library is 1.10.99, but built with the headers of "), job.output);
}

BOOST_AUTO_TEST_CASE(submit_prints_the_script_it_would_send_and_options_behind_two_dashes_are_sbatchs) {
  const auto result =
      run_altiplano("submit " + kJob + " --dry-run --set slurm.nodes=2 --set slurm.time=90 -- --partition=x");
  BOOST_TEST(result.exit_code == 0, result.output);
  for (const char* line :
       {"#!/bin/bash\n", "#SBATCH --nodes=2\n", "#SBATCH --time=90\n", "#SBATCH --no-kill\n", " supervise -c "})
    BOOST_TEST(contains(result.output, line), result.output);
  const auto chain = run_altiplano("submit " + kJob + " --dry-run --set slurm.chain=3");
  BOOST_TEST(contains(chain.output, " --no-requeue\n"), chain.output);
}

BOOST_AUTO_TEST_CASE(what_slurm_could_not_take_is_refused_before_it_is_asked) {
  for (const auto& [setting, message] : std::vector<std::pair<std::string, std::string>>{
           {"slurm.time=soon", "--set slurm.time: got soon, expected a time such as 90 (minutes)"},
           {"slurm.min_nodes=4", "--set slurm.min_nodes: 4 is more than slurm.nodes 1; at most 1"},
           {"slurm.stall_seconds=5", "--set slurm.stall_seconds: 5 is no more than slurm.heartbeat_seconds 10"},
           {"slurm.nods=4", "--set slurm.nods: unknown key; did you mean nodes?"}}) {
    const auto result = run_altiplano("submit " + kJob + " --dry-run --set " + setting);
    BOOST_TEST(result.exit_code == 2, result.output);
    BOOST_TEST(contains(result.output, message), result.output);
  }
  const auto outside = run_altiplano("supervise -c " + kJob);
  BOOST_TEST(outside.exit_code == 2, outside.output);
  BOOST_TEST(contains(outside.output, "this scheduler has no steps"), outside.output);
}

BOOST_AUTO_TEST_CASE(status_and_logs_tell_what_a_runs_folder_holds) {
  const TemporaryDirectory folder;
  BOOST_TEST(run_altiplano("status " + folder / "none").exit_code == 2);
  std::filesystem::create_directories(folder / "logs/job-7.0.1");
  std::filesystem::create_directories(folder / "checkpoints/step-00000040");
  write_bytes(folder / "metrics.jsonl", "{\"step\":41,\"loss\":2.5}\n{\"step\":42,\"loss\":2.25}\n{\"st");
  write_bytes(folder / "end.json", "{\"start\":\"7.0.1\",\"end\":\"stopped\",\"step\":42,\"ranks\":3}\n");
  write_bytes(folder / "story.log", "one\ntwo\nthree\n");
  write_bytes(folder / "logs/job-7.0.1/rank-2.log", "a\nb\nc\n");
  const auto status = run_altiplano("status " + folder.path().string() + " --lines 2");
  BOOST_TEST(status.output == "run       " + folder.path().string() +
                                  "\nstep      42, loss 2.2500\nsaved     step 40\nend       start 7.0.1: saved and "
                                  "stopped after step 42 on 3 ranks\nstory     two\nstory     three\n");
  BOOST_TEST(run_altiplano("logs " + folder.path().string() + " --rank 2 --lines 2").output == "b\nc\n");
  BOOST_TEST(contains(run_altiplano("logs " + folder.path().string() + " --rank 1").output, "has no log of rank 1"));
}
