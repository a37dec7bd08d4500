#include "framework/config/provenance.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "tests/support/contains.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/config/job_fixture.hpp"

using namespace altiplano;
using namespace altiplano::test;

BOOST_AUTO_TEST_CASE(each_start_keeps_what_it_was_made_of) {
  TemporaryDirectory folder;
  setenv("OMP_NUM_THREADS", "3", 1);
  setenv("ALTIPLANO_SECRET_TOKEN", "hidden", 1);
  auto job = load(kSmallest + "run: {dir: \"" + folder.path().string() + "\"}\n", {"train.max_steps=7"});
  BOOST_TEST_REQUIRE(job.is_ok(), job.status().message());
  StartFacts facts{"n7", "12.0", 4, true, "altiplano_plan: 1\n", "plan.yaml"};
  auto first = write_provenance(*job, facts);
  BOOST_TEST_REQUIRE(first.is_ok(), first.status().message());
  BOOST_TEST(*first == folder / "provenance/0001");
  BOOST_TEST(write_provenance(*job, facts).value() == folder / "provenance/0002");
  BOOST_TEST(read_bytes(*first + "/job.yaml") == job->text);
  BOOST_TEST(read_bytes(*first + "/plan.yaml") == facts.plan);
  const std::string start = read_bytes(*first + "/start.yaml");
  for (const char* part :
       {"host: \"n7\"", "ranks: 4", "job_id: \"12.0\"", "command: [", "launched_by: [", "OMP_NUM_THREADS: \"3\"",
        "ALTIPLANO_SECRET_TOKEN: (set, not kept)", "plan_file: \"plan.yaml\""})
    BOOST_TEST(contains(start, part), part);
  BOOST_TEST(contains(start, std::string("commit: ") + git_commit()));
  BOOST_TEST(!contains(start, "hidden"));
  BOOST_TEST(parse_yaml(start).problems.empty());
}

BOOST_AUTO_TEST_CASE(the_effective_configuration_of_a_start_loads_again_as_the_same) {
  TemporaryDirectory folder;
  auto job = load(kSmallest + "run: {dir: \"" + folder.path().string() + "\"}\n", {"train.max_steps=7"});
  BOOST_TEST_REQUIRE(job.is_ok());
  BOOST_TEST(newest_effective_config(folder.path().string()) == "");
  BOOST_TEST(write_provenance(*job, {}).is_ok());
  const std::string file = newest_effective_config(folder.path().string());
  const std::string text = read_bytes(file);
  BOOST_TEST(contains(text, "# --set"));
  auto again = load(text);
  BOOST_TEST_REQUIRE(again.is_ok(), again.status().message());
  BOOST_TEST(config_difference(job->options, again->options) == "");
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_made_is_named) {
  TemporaryDirectory folder;
  write_bytes(folder / "run", "a file");
  auto job = load(kSmallest + "run: {dir: \"" + folder / "run" + "\"}\n");
  auto written = write_provenance(*job, {});
  BOOST_TEST(!written.is_ok());
  BOOST_TEST(written.status().message().starts_with(folder / "run/provenance/0001: cannot be made: "));
}

BOOST_AUTO_TEST_CASE(differences_name_key_values_and_origins) {
  auto first = load(kSmallest), second = load(kSmallest + "optimizer: {lr: 0.5}\n", {"train.seed=7"});
  BOOST_TEST(config_difference(first->options, second->options) ==
             "train.seed: 1 -> 7  # default -> --set\n"
             "optimizer.lr: 0.0003 -> 0.5  # default -> job.yaml:6:17\n");
  BOOST_TEST(config_difference(first->options, first->options) == "");
}

BOOST_AUTO_TEST_CASE(a_start_that_kept_nothing_is_no_newest_one) {
  TemporaryDirectory folder;
  BOOST_TEST(newest_effective_config(folder.path()).empty());
  for (const char* number : {"0009", "0010", "0011"})
    std::filesystem::create_directories(folder.path() / "provenance" / number);
  write_bytes(folder / "provenance/0009/effective.yaml", "train.seed: 1\n");
  write_bytes(folder / "provenance/0010/effective.yaml", "");
  BOOST_TEST(newest_effective_config(folder.path()) == folder / "provenance/0009/effective.yaml");
}
