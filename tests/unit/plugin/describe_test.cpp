#include "framework/plugin/describe.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

namespace {

PluginInfo info_of(const std::string& name, uint32_t kind, const std::string& refusal = "") {
  PluginInfo info;
  info.name = name;
  info.kind = kind;
  info.version = name.empty() ? "" : "1.0.0";
  info.path = "/p/x.so";
  info.refusal = refusal;
  return info;
}

const std::vector<PluginInfo> kInfos = {
    info_of("schedule/gpipe", ALTIPLANO_PLUGIN_SCHEDULE), info_of("comm/shm", ALTIPLANO_PLUGIN_COMM),
    info_of("", 0, "/p/bad.so: not an Altiplano plugin"), info_of("scheduler/local", ALTIPLANO_PLUGIN_SCHEDULER),
    info_of("comm/local", ALTIPLANO_PLUGIN_COMM)};

}  // namespace

BOOST_AUTO_TEST_CASE(the_list_is_a_table_by_name_and_the_refused_with_reasons) {
  BOOST_TEST(plugin_list_text(kInfos) ==
             "name             version  kind       path\n"
             "comm/local       1.0.0    comm       /p/x.so\n"
             "comm/shm         1.0.0    comm       /p/x.so\n"
             "schedule/gpipe   1.0.0    schedule   /p/x.so\n"
             "scheduler/local  1.0.0    scheduler  /p/x.so\n"
             "\n"
             "refused:\n"
             "  /p/bad.so: not an Altiplano plugin\n");
  BOOST_TEST(plugin_list_text({}) == "name  version  kind  path\n");
}

BOOST_AUTO_TEST_CASE(the_page_of_a_plugin_says_what_is_known_of_it) {
  PluginInfo info = kInfos[1];
  info.build_id = "abc";
  info.help = "shared memory";
  info.capabilities = 10;
  BOOST_TEST(plugin_info_text(info) ==
             "name: comm/shm\nkind: comm\nversion: 1.0.0\nbuild: abc\nhelp: shared memory\ncapabilities: 0xa "
             "(needs_host_progress, between_processes)\npath: "
             "/p/x.so\n");
  BOOST_TEST(plugin_info_text(kInfos[2]) == "path: /p/x.so\nrefused: /p/bad.so: not an Altiplano plugin\n");
}

BOOST_AUTO_TEST_CASE(a_short_name_is_enough_where_one_kind_has_it) {
  BOOST_TEST(find_plugin_info(kInfos, "gpipe")->name == "schedule/gpipe");
  BOOST_TEST(find_plugin_info(kInfos, "comm/local")->name == "comm/local");
  BOOST_TEST(find_plugin_info(kInfos, "local").status().message() ==
             "plugin local is ambiguous: scheduler/local, comm/local");
  BOOST_TEST(find_plugin_info(kInfos, "schedule/gpip").status().message() ==
             "no plugin schedule/gpip, did you mean schedule/gpipe?; there is: schedule/gpipe, comm/shm, "
             "scheduler/local, comm/local");
}

BOOST_AUTO_TEST_CASE(a_refused_second_file_does_not_hide_the_first) {
  std::vector<PluginInfo> infos = {
      kInfos[0], info_of("schedule/gpipe", ALTIPLANO_PLUGIN_SCHEDULE, "/p/y.so: found a second schedule/gpipe")};
  BOOST_TEST(find_plugin_info(infos, "gpipe")->refusal == "");
}
