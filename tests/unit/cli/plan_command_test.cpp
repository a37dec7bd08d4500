// altiplano plan and validate as a person starts them: plans that do not fit, plans that are read back.
#include <boost/test/unit_test.hpp>

#include "tests/support/temporary_directory.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

/// Output and exit code of a command about the quickstart's job on four ranks.
CommandResult run_on_job(const std::string& command, const std::string& arguments) {
  return run_command("env -u ALTIPLANO_PLUGIN_PATH " ALTIPLANO_BINARY_DIR "/bin/altiplano " + command +
                     " -n 4 -c " ALTIPLANO_SOURCE_DIR "/configs/jobs/quickstart.yaml " + arguments);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_plan_that_does_not_fit_exits_with_3_and_names_the_smallest_change) {
  auto microbatch = run_on_job("plan", "--set memory.per_rank=12MiB");
  BOOST_TEST(microbatch.exit_code == 3);
  BOOST_TEST(contains(microbatch.output, "Smallest change that fits:\n    train.micro_batch_size: 4"),
             microbatch.output);
  auto more_ranks = run_on_job("plan", "--set memory.per_rank=4MiB");
  BOOST_TEST(more_ranks.exit_code == 3);
  BOOST_TEST(contains(more_ranks.output, "on 8 ranks"), more_ranks.output);
  auto nothing = run_on_job("plan", "--set memory.per_rank=1MiB");
  BOOST_TEST(nothing.exit_code == 3);
  BOOST_TEST(contains(nothing.output, "up to 32 ranks would fit"), nothing.output);
}

BOOST_AUTO_TEST_CASE(a_written_plan_is_read_back_and_prints_the_same) {
  TemporaryDirectory folder;
  std::string file = folder / "plan.yaml";
  BOOST_TEST(run_on_job("plan", "-o " + file).exit_code == 0);
  auto printed = run_on_job("plan", "--plan " + file);
  BOOST_TEST(printed.exit_code == 0);
  BOOST_TEST(printed.output == read_bytes(file));
}

BOOST_AUTO_TEST_CASE(an_unsound_plan_is_refused_with_file_and_rule) {
  TemporaryDirectory folder;
  std::string file = folder / "plan.yaml";
  BOOST_TEST(run_on_job("plan", "-o " + file).exit_code == 0);
  std::string text = read_bytes(file);
  text.replace(text.find("\"0-3\""), 5, "\"0-2\"");
  write_bytes(file, text);
  auto refused = run_on_job("validate", "--plan " + file);
  BOOST_TEST(refused.exit_code == 2);
  BOOST_TEST(contains(refused.output, "3 slots"), refused.output);
}
