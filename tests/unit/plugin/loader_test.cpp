// Every wrong plugin of tests/fixtures/plugins gets the refusal a person would see, and the process goes on.
#include "framework/plugin/loader.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "framework/api/device.hpp"
#include "framework/api/fingerprint.hpp"
#include "framework/api/scheduler.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/plugin/fixture.hpp"

using namespace altiplano;
using namespace altiplano::test;
using altiplano::test::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

/// The refusal without the file's path, which it must start with.
std::string refusal_of(const std::string& name) {
  std::string path = fixture(name);
  LoadedPlugin plugin;
  Status status = load_plugin(path, plugin);
  BOOST_TEST((status.code() == StatusCode::kInvalidArgument));
  BOOST_TEST(plugin.info.refusal == status.message());
  BOOST_TEST((plugin.object == nullptr));
  BOOST_REQUIRE_MESSAGE(status.message().starts_with(path + ": "), status.message());
  return status.message().substr(path.size() + 2);
}

std::string abi_text(int major, int minor) {
  return fmt::format("{}.{}", major, minor);
}
const std::string kHostAbi =
    fmt::format("needed: {}.x, at most {}", ALTIPLANO_ABI_MAJOR, abi_text(ALTIPLANO_ABI_MAJOR, ALTIPLANO_ABI_MINOR));

}  // namespace

BOOST_AUTO_TEST_CASE(a_right_plugin_is_loaded_with_everything_it_says_of_itself) {
  LoadedPlugin plugin;
  Status status = load_plugin(fixture("right"), plugin);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  BOOST_TEST(plugin.info.name == "schedule/right");
  BOOST_TEST(plugin.info.version == "1.0.0");
  BOOST_TEST(plugin.info.build_id == "fixture");
  BOOST_TEST(plugin.info.help == "a fixture");
  BOOST_TEST(plugin.info.path == fixture("right"));
  BOOST_TEST(plugin.info.kind == Schedule::kKind);
  BOOST_TEST(plugin.info.refusal == "");
  BOOST_TEST(static_cast<const Schedule*>(static_cast<Schedule*>(plugin.object))->build({}).is_ok());
  plugin.descriptor->destroy(plugin.object);
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_refused) {
  BOOST_TEST(refusal_of("nowhere") == "No such file or directory; needed: a plugin's shared object");
}

BOOST_AUTO_TEST_CASE(a_directory_is_refused) {
  LoadedPlugin plugin;
  std::string path = std::string(ALTIPLANO_BINARY_DIR) + "/fixtures";
  BOOST_TEST(load_plugin(path, plugin).message() == path + ": not a regular file; needed: a plugin's shared object");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_shared_object_is_refused_with_the_linkers_words) {
  TemporaryDirectory directory;
  std::string path = directory / "text.so";
  std::ofstream(path)
      << "no shared object, but longer than an ELF header so that the linker reads what it has got here\n";
  LoadedPlugin plugin;
  BOOST_TEST(load_plugin(path, plugin).message() == path + ": cannot be loaded: " + path + ": invalid ELF header");
}

BOOST_AUTO_TEST_CASE(a_plugin_that_was_cut_off_is_refused_before_it_is_mapped) {
  TemporaryDirectory folder;
  const std::string cut = folder / "cut.so";
  fs::copy_file(fixture("right"), cut);
  fs::resize_file(cut, 5000);
  LoadedPlugin plugin;
  const std::string refusal = load_plugin(cut, plugin).message();
  BOOST_TEST(refusal.starts_with(cut + ": cut off: 5000 bytes, its header promises "), refusal);
}

BOOST_AUTO_TEST_CASE(an_undefined_symbol_is_refused_at_once_and_named) {
  BOOST_TEST(refusal_of("undefined_symbol") ==
             "cannot be loaded: " + fixture("undefined_symbol") + ": undefined symbol: nobody_defines_this");
}

BOOST_AUTO_TEST_CASE(a_shared_object_without_the_query_symbol_is_refused) {
  BOOST_TEST(refusal_of("missing_symbol") ==
             "not an Altiplano plugin: found no symbol altiplano_plugin_query; needed: ALTIPLANO_REGISTER_PLUGIN at "
             "the end of its adapter");
}

BOOST_AUTO_TEST_CASE(a_null_descriptor_is_refused) {
  BOOST_TEST(refusal_of("null_descriptor") ==
             "found a null descriptor; needed: a constant altiplano_plugin_descriptor");
}

BOOST_AUTO_TEST_CASE(a_descriptor_of_another_size_is_refused) {
  BOOST_TEST(refusal_of("wrong_struct_size") ==
             fmt::format("found a descriptor of 40 bytes; needed: at least {}", sizeof(altiplano_plugin_descriptor)));
}

BOOST_AUTO_TEST_CASE(an_older_and_a_newer_abi_major_are_refused) {
  BOOST_TEST(refusal_of("older_major") == "found plugin ABI " + abi_text(ALTIPLANO_ABI_MAJOR - 1, ALTIPLANO_ABI_MINOR) +
                                              ", older than this host's; " + kHostAbi);
  BOOST_TEST(refusal_of("newer_major") == "found plugin ABI " + abi_text(ALTIPLANO_ABI_MAJOR + 1, ALTIPLANO_ABI_MINOR) +
                                              ", newer than this host's; " + kHostAbi);
}

BOOST_AUTO_TEST_CASE(a_newer_abi_minor_is_refused) {
  BOOST_TEST(refusal_of("newer_minor") == "found plugin ABI " + abi_text(ALTIPLANO_ABI_MAJOR, ALTIPLANO_ABI_MINOR + 1) +
                                              ", newer than this host's; " + kHostAbi);
}

BOOST_AUTO_TEST_CASE(an_unknown_kind_is_refused_with_the_kinds_there_are) {
  BOOST_TEST(refusal_of("unknown_kind") ==
             "found plugin kind 99; needed: one of 1 (planner), 2 (schedule), 3 (comm), 4 (device), 5 (op), 6 (model), "
             "7 (scheduler)");
}

BOOST_AUTO_TEST_CASE(another_version_of_the_interface_is_refused) {
  BOOST_TEST(refusal_of("wrong_interface_version") ==
             fmt::format("found version 9 of the schedule interface; needed: {}", Schedule::kInterfaceVersion));
}

BOOST_AUTO_TEST_CASE(a_name_that_does_not_fit_its_kind_is_refused) {
  std::string needed = "needed: 'schedule/<name>' of lower-case letters, digits, '_' and '-'";
  BOOST_TEST(refusal_of("wrong_kind_name") == "found name 'planner/wrong_kind_name'; " + needed);
  BOOST_TEST(refusal_of("wrong_name") == "found name 'schedule/Wrong Name'; " + needed);
}

BOOST_AUTO_TEST_CASE(a_null_member_is_refused_by_its_name) {
  BOOST_TEST(refusal_of("null_help") == "found a null 'help' in the descriptor; needed: every member set");
}

BOOST_AUTO_TEST_CASE(another_fingerprint_is_refused_with_both_sides_printed) {
  BOOST_TEST(refusal_of("wrong_fingerprint") == std::string("found fingerprint 'api 0000000000000000'; needed: '") +
                                                    kAbiFingerprint +
                                                    "'; rebuild the plugin against this host's headers");
}

BOOST_AUTO_TEST_CASE(the_fingerprint_names_headers_compiler_library_and_language) {
  std::string text = kAbiFingerprint;
  for (const char* part : {"api ", ", compiler abi ", ", libstdc++ cxx11=1, c++ 2020"}) {
    BOOST_TEST((text.find(part) != std::string::npos), text << " lacks " << part);
  }
}

BOOST_AUTO_TEST_CASE(a_plugin_that_cannot_be_created_is_refused_with_its_reason) {
  BOOST_TEST(refusal_of("null_object") == "schedule/null_object could not be created: no such hardware here");
  BOOST_TEST(refusal_of("throwing_constructor") ==
             "schedule/throwing_constructor could not be created: no licence file");
}

BOOST_AUTO_TEST_CASE(an_exception_of_create_stops_at_the_door) {
  BOOST_TEST(refusal_of("throwing_create") ==
             "schedule/throwing_create could not be created: an exception came through the plugin door: thrown across "
             "the door");
}

BOOST_AUTO_TEST_CASE(a_world_writable_file_is_refused) {
  TemporaryDirectory directory;
  std::string path = directory / "right.so";
  fs::copy_file(fixture("right"), path);
  fs::permissions(path, fs::perms(0757));
  LoadedPlugin plugin;
  BOOST_TEST(load_plugin(path, plugin).message() ==
             "plugin file " + path +
                 " is writable by everybody (mode 0757), so anybody could replace the plugin; "
                 "needed: chmod o-w " +
                 path);
}

BOOST_AUTO_TEST_CASE(a_world_writable_directory_is_refused) {
  TemporaryDirectory directory;
  std::string path = directory / "right.so";
  fs::copy_file(fixture("right"), path);
  fs::permissions(directory.path(), fs::perms(01777));
  LoadedPlugin plugin;
  std::string where = directory.path().string();
  BOOST_TEST(load_plugin(path, plugin).message() ==
             "plugin directory " + where +
                 " is writable by everybody (mode 1777), so anybody could replace the plugin; "
                 "needed: chmod o-w " +
                 where);
}

BOOST_AUTO_TEST_CASE(every_kind_refuses_another_abi_interface_version_and_fingerprint) {
  LoadedPlugin plugin;
  BOOST_REQUIRE(load_plugin(fixture("right"), plugin).is_ok());
  for (uint32_t kind = ALTIPLANO_PLUGIN_PLANNER; plugin_kind_name(kind) != nullptr; ++kind) {
    const std::string name = fmt::format("{}/right", plugin_kind_name(kind));
    altiplano_plugin_descriptor right = *plugin.descriptor;
    right.kind = kind;
    right.interface_version = kind == ALTIPLANO_PLUGIN_DEVICE      ? DeviceBackend::kInterfaceVersion
                              : kind == ALTIPLANO_PLUGIN_SCHEDULER ? Scheduler::kInterfaceVersion
                                                                   : 1;
    right.name = name.c_str();
    BOOST_TEST(check_descriptor("p.so", &right).is_ok(), name);
    for (uint16_t major : {ALTIPLANO_ABI_MAJOR - 1, ALTIPLANO_ABI_MAJOR + 1}) {
      altiplano_plugin_descriptor wrong = right;
      wrong.abi_major = major;
      BOOST_TEST(check_descriptor("p.so", &wrong).message().starts_with("p.so: found plugin ABI "), name);
    }
    for (uint32_t version : {right.interface_version - 1, right.interface_version + 1}) {
      altiplano_plugin_descriptor wrong = right;
      wrong.interface_version = version;
      BOOST_TEST(check_descriptor("p.so", &wrong).message() ==
                 fmt::format("p.so: found version {} of the {} interface; needed: {}", version, plugin_kind_name(kind),
                             right.interface_version));
    }
    altiplano_plugin_descriptor wrong = right;
    wrong.abi_fingerprint = "another";
    BOOST_TEST(check_descriptor("p.so", &wrong).message().starts_with("p.so: found fingerprint 'another'"), name);
  }
  plugin.descriptor->destroy(plugin.object);
}
