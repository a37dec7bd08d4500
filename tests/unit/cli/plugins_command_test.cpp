// `altiplano plugins` as a person starts it.
#include <boost/test/unit_test.hpp>

#include "tests/support/contains.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace altiplano::test;

namespace {

const std::string kFixtures = ALTIPLANO_BINARY_DIR "/fixtures/plugins";

CommandResult run_plugins(const std::string& arguments) {
  return run_command("env -u ALTIPLANO_PLUGIN_PATH " ALTIPLANO_BINARY_DIR "/bin/altiplano plugins " + arguments);
}

}  // namespace

BOOST_AUTO_TEST_CASE(plugins_list_prints_the_plugins_of_the_build_and_refuses_none) {
  auto result = run_plugins("list");
  BOOST_TEST(result.exit_code == 0);
  BOOST_TEST(result.output.starts_with("name "), result.output);
  for (const char* line : {"\nschedule/1f1b ", "\nschedule/gpipe ", "\nscheduler/local "})
    BOOST_TEST(contains(result.output, line), line);
  BOOST_TEST(contains(result.output, ALTIPLANO_TEST_PLUGIN_DIR "/schedule-1f1b.so\n"), result.output);
  BOOST_TEST(!contains(result.output, "refused:"), result.output);
}

BOOST_AUTO_TEST_CASE(plugins_list_says_why_a_plugin_was_refused) {
  auto result = run_plugins("list --plugin-path " + kFixtures);
  BOOST_TEST(result.exit_code == 0);
  BOOST_TEST(contains(result.output, "\nrefused:\n"), result.output);
  BOOST_TEST(contains(result.output, kFixtures + "/unknown_kind.so: found plugin kind 99; needed: one of 1 (planner)"),
             result.output);
  BOOST_TEST(contains(result.output, "\nschedule/right "), result.output);
}

BOOST_AUTO_TEST_CASE(plugins_info_prints_one_plugin) {
  auto result = run_plugins("info 1f1b");
  BOOST_TEST(result.exit_code == 0);
  BOOST_TEST(result.output.starts_with("name: schedule/1f1b\nkind: schedule\nversion: 0.1.0\nbuild: "), result.output);
  BOOST_TEST(contains(result.output, "\ncapabilities: 0x0\npath: " ALTIPLANO_TEST_PLUGIN_DIR "/schedule-1f1b.so\n"),
             result.output);
}

BOOST_AUTO_TEST_CASE(plugins_info_of_an_unknown_name_exits_with_2_and_suggests) {
  auto result = run_plugins("info schedule/1f1");
  BOOST_TEST(result.exit_code == 2);
  BOOST_TEST(result.output.starts_with("error: no plugin schedule/1f1, did you mean schedule/1f1b?; there is: "),
             result.output);
}

BOOST_AUTO_TEST_CASE(every_help_page_of_plugins_has_examples) {
  for (const std::string command : {"", "list ", "info "}) {
    auto result = run_plugins(command + "--help");
    BOOST_TEST(result.exit_code == 0);
    BOOST_TEST(contains(result.output, "Examples:\n  altiplano plugins "), result.output);
  }
}
