#include "framework/plugin/registry.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "framework/base/text.hpp"
#include "framework/graph/op_definition.hpp"
#include "tests/unit/plugin/fixture.hpp"

using namespace altiplano;
using namespace altiplano::test;
namespace fs = std::filesystem;

namespace {

/// Sets an environment variable for one test.
struct Variable {
  std::string name;
  Variable(std::string variable, const std::string& value) : name(std::move(variable)) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variable() { unsetenv(name.c_str()); }
};

const PluginInfo* find_info(const std::vector<PluginInfo>& infos, const std::string& path) {
  auto at = std::find_if(infos.begin(), infos.end(), [&](const PluginInfo& info) { return info.path == path; });
  return at == infos.end() ? nullptr : &*at;
}

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  BOOST_REQUIRE(pipe != nullptr);
  std::string text;
  char part[4096];
  for (size_t got = 0; (got = fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, got);
  BOOST_REQUIRE_MESSAGE(pclose(pipe) == 0, command);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_plugins_beside_the_library_are_found_without_any_setting) {
  PluginRegistry registry;
  BOOST_TEST(fs::equivalent(registry.search_path().back(), ALTIPLANO_TEST_PLUGIN_DIR));
  BOOST_TEST(registry.schedule("1f1b").is_ok());
  BOOST_TEST(registry.schedule("schedule/gpipe").is_ok());
  BOOST_TEST(registry.scheduler("local").is_ok());
}

BOOST_AUTO_TEST_CASE(no_plugin_of_the_tree_is_refused) {
  PluginRegistry registry;
  for (const auto& info : registry.list()) BOOST_TEST(info.refusal == "");
}

BOOST_AUTO_TEST_CASE(every_plugin_of_the_tree_exports_the_query_symbol_alone) {
  int num_plugins = 0;
  for (const auto& entry : fs::directory_iterator(ALTIPLANO_TEST_PLUGIN_DIR)) {
    if (entry.path().extension() != ".so") continue;
    ++num_plugins;
    std::vector<std::string> names;
    for (const auto& line :
         split(output_of("nm -D --defined-only --extern-only '" + entry.path().string() + "'"), '\n')) {
      if (!trim(line).empty()) names.push_back(line.substr(line.rfind(' ') + 1));
    }
    BOOST_TEST(join(names, " ") == ALTIPLANO_PLUGIN_QUERY_SYMBOL, entry.path() << " exports " << join(names, " "));
  }
  BOOST_TEST(num_plugins >= 3);
}

BOOST_AUTO_TEST_CASE(added_directories_come_first_in_their_order_then_the_environments) {
  Variable variable("ALTIPLANO_PLUGIN_PATH", "/env/a::/env/b");
  PluginRegistry registry;
  registry.add_search_path("/added/a");
  registry.add_search_path("/added/b");
  auto path = registry.search_path();
  BOOST_REQUIRE(path.size() == 5u);
  path.pop_back();
  std::vector<std::string> expected = {"/added/a", "/added/b", "/env/a", "/env/b"};
  BOOST_TEST(path == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_directory_of_wrong_plugins_is_listed_with_reasons_and_the_right_one_works) {
  Variable variable("ALTIPLANO_PLUGIN_PATH", fixture_directory());
  PluginRegistry registry;
  auto infos = registry.list();
  int num_usable = 0;
  for (const auto& info : infos)
    num_usable += info.refusal.empty() && fs::path(info.path).parent_path() == fixture_directory();
  BOOST_TEST(num_usable == 3);  // right, op_double and device_faulty
  const PluginInfo* wrong = find_info(infos, fixture("newer_minor"));
  BOOST_REQUIRE(wrong != nullptr);
  BOOST_TEST((wrong->refusal.find("newer than this host's") != std::string::npos));
  BOOST_TEST(registry.schedule("right").is_ok());
  BOOST_TEST(registry.schedule("1f1b").is_ok());
}

BOOST_AUTO_TEST_CASE(a_second_file_of_one_name_is_refused_naming_both) {
  PluginRegistry registry;
  BOOST_REQUIRE(registry.load_file(fixture("right")).is_ok());
  auto second = registry.load_file(fixture("duplicate_name"));
  BOOST_REQUIRE(!second.is_ok());
  BOOST_TEST(second.status().message() == fixture("duplicate_name") + ": found a second schedule/right; the first is " +
                                              fixture("right") + "; needed: one file per name on the search path");
  BOOST_TEST(registry.load_file(fixture("right"))->version == "1.0.0");
}

BOOST_AUTO_TEST_CASE(a_directory_named_twice_is_no_duplicate) {
  Variable variable("ALTIPLANO_PLUGIN_PATH",
                    std::string(ALTIPLANO_TEST_PLUGIN_DIR) + ":" + ALTIPLANO_TEST_PLUGIN_DIR + "/");
  PluginRegistry registry;
  for (const auto& info : registry.list()) BOOST_TEST(info.refusal == "");
}

BOOST_AUTO_TEST_CASE(an_unknown_name_gets_a_suggestion_and_what_there_is) {
  PluginRegistry registry;
  std::string message = registry.schedule("1f1d").status().message();
  BOOST_TEST(message.starts_with(
      "no plugin schedule/1f1d, did you mean schedule/1f1b?; there is: schedule/1f1b, schedule/gpipe"));
  BOOST_TEST((message.find("; searched: ") != std::string::npos));
  BOOST_TEST(registry.schedule("planner/manual").status().message() ==
             "plugin planner/manual is a planner; needed: a schedule ('schedule/<name>')");
}

BOOST_AUTO_TEST_CASE(a_name_that_was_found_but_refused_gets_the_refusal) {
  PluginRegistry registry;
  auto refused = registry.load_file(fixture("null_object"));
  BOOST_REQUIRE(!refused.is_ok());
  BOOST_TEST(registry.schedule("null_object").status().message() ==
             "plugin schedule/null_object was found but refused: " + refused.status().message());
}

BOOST_AUTO_TEST_CASE(ops_of_extensions_are_in_the_table_once_and_a_clash_names_the_plugin) {
  BOOST_REQUIRE(OpTable::instance().find("fixture_double") == nullptr);
  PluginRegistry registry;
  BOOST_REQUIRE(registry.load_file(fixture("op_double")).is_ok());
  BOOST_REQUIRE(registry.ops().is_ok());
  BOOST_TEST(registry.ops()->size() == 1u);
  BOOST_REQUIRE(OpTable::instance().find("fixture_double") != nullptr);
  BOOST_TEST(OpTable::instance().get("fixture_double").help == "x -> 2x");
  PluginRegistry other;  // its ops clash with those just added
  BOOST_REQUIRE(other.load_file(fixture("op_double")).is_ok());
  std::string text = other.ops().status().to_string();
  BOOST_TEST((text.find("fixture_double") != std::string::npos), text);
  BOOST_TEST((text.find("while adding the ops of op/double (" + fixture("op_double") + ")") != std::string::npos),
             text);
}

BOOST_AUTO_TEST_CASE(a_refused_file_tried_again_is_listed_once) {
  PluginRegistry registry;
  for (int i = 0; i < 2; ++i) BOOST_TEST(!registry.load_file(fixture("newer_minor")).is_ok());
  int num_listed = 0;
  for (const auto& info : registry.list()) num_listed += info.path == fixture("newer_minor");
  BOOST_TEST(num_listed == 1);
}

BOOST_AUTO_TEST_CASE(many_threads_may_ask_at_once) {
  PluginRegistry registry;
  std::vector<const Schedule*> found(8);
  {
    std::vector<std::jthread> threads;
    for (auto& slot : found) threads.emplace_back([&] { slot = *registry.schedule("1f1b"); });
  }
  for (const Schedule* schedule : found) BOOST_TEST(schedule == found[0]);
}

BOOST_AUTO_TEST_CASE(the_local_scheduler_takes_every_environment_and_gives_this_host) {
  PluginRegistry registry;
  const Scheduler& local = **registry.scheduler("local");
  BOOST_TEST(local.detect({}));
  BOOST_TEST(local.detect({{"SLURM_JOB_ID", "7"}}));
  auto allocation = local.allocation({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "64"}}, 3);
  BOOST_REQUIRE(allocation.is_ok());
  BOOST_TEST(allocation->hosts.size() == 1u);
  BOOST_TEST(allocation->ranks_per_host.at(0) == 3);
  BOOST_TEST(allocation->job_id.starts_with("local-"));
  BOOST_TEST(allocation->restart_count == 0);
  BOOST_TEST(local.allocation({}, 0).status().message() == "scheduler local: 0 ranks; nearest legal value: 1");
}

BOOST_AUTO_TEST_CASE(the_local_scheduler_shares_out_the_processors_of_the_affinity_mask) {
  cpu_set_t before, one;
  BOOST_REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  PluginRegistry registry;
  const Scheduler& local = **registry.scheduler("local");
  BOOST_TEST(local.allocation({}, 1)->cpus_per_rank == CPU_COUNT(&before));
  BOOST_TEST(local.allocation({}, 1000)->cpus_per_rank == 1);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before) && CPU_COUNT(&one) == 0) CPU_SET(cpu, &one);
  }
  BOOST_REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  BOOST_TEST(local.allocation({}, 1)->cpus_per_rank == 1);
  BOOST_REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
}
