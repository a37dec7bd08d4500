// altiplano plugins: what the search path holds, and whether a plugin keeps what its kind promises.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/cli/plugin_template.hpp"
#include "framework/conformance/check_file.hpp"
#include "framework/plugin/describe.hpp"

namespace altiplano {
namespace {

struct InfoArguments {
  JobArguments job;
  std::string name;
};

Status list_plugins(const JobArguments& arguments) {
  use_plugin_path(arguments.plugin_path);
  print_out("{}", plugin_list_text(PluginRegistry::instance().list()));
  return Status::ok();
}

Status show_plugin(const InfoArguments& arguments) {
  use_plugin_path(arguments.job.plugin_path);
  ALTIPLANO_ASSIGN(auto info, find_plugin_info(PluginRegistry::instance().list(), arguments.name));
  print_out("{}", plugin_info_text(info));
  return Status::ok();
}

struct CheckArguments {
  JobArguments job;
  std::string file;
  double timeout_seconds = 300;
};

/// The file itself, or the one of the plugin that has this name.
Result<std::string> file_of(const std::string& name) {
  std::error_code error;
  if (name.ends_with(".so") || std::filesystem::exists(name, error)) return name;
  ALTIPLANO_ASSIGN(auto info, find_plugin_info(PluginRegistry::instance().list(), name));
  return info.path;
}

Status check_plugin(const CheckArguments& arguments) {
  using namespace conformance;
  use_plugin_path(arguments.job.plugin_path);
  ALTIPLANO_ASSIGN(const std::string file, file_of(arguments.file));
  CheckFileOptions options;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(arguments.timeout_seconds * 1000));
  const auto print = [](const std::string& text) {
    print_out("{}", text);
    flush_out();
  };
  options.on_loaded = [&](const PluginInfo& info) { print(heading_text(info)); };
  options.on_result = [&](const CheckResult& result) { print(result_text(result)); };
  ALTIPLANO_ASSIGN(const FileReport report, check_file(file, options));
  print(summary_text(report));
  if (report.num(Verdict::kBroken) == 0) return Status::ok();
  return runtime_failure("{} breaks {} of {}", report.info.name, report.num(Verdict::kBroken),
                         counted(static_cast<int64_t>(report.results.size()), "promise"));
}

struct NewArguments {
  std::string kind, name, folder;
};

Status write_plugin(const NewArguments& arguments) {
  const std::string folder = arguments.folder.empty() ? arguments.name : arguments.folder;
  ALTIPLANO_ASSIGN(const auto files, write_new_plugin(arguments.kind, arguments.name, folder));
  print_out("{}/{} in {}:\n", arguments.kind, arguments.name, folder);
  for (const std::string& file : files) print_out("  {}\n", file);
  // Where this program is installed, the package is found from its prefix.
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  std::error_code error;
  const bool is_installed = std::filesystem::exists(prefix / "lib/cmake/Altiplano/AltiplanoConfig.cmake", error);
  print_out(
      "next:\n  cd {}\n  cmake -B build -DCMAKE_PREFIX_PATH={}\n  cmake --build build\n"
      "  ctest --test-dir build --output-on-failure\n",
      folder, is_installed ? prefix.string() : "PREFIX    # where Altiplano was installed with `cmake --install`");
  return Status::ok();
}

}  // namespace

void add_plugins_command(CLI::App& app, int& exit_code) {
  CLI::App* plugins = add_command(app, "plugins", "List, describe, check and start plugins", R"(
    altiplano plugins list
    altiplano plugins info schedule/1f1b
    altiplano plugins check build/schedule-mine.so
    altiplano plugins new schedule mine)");
  plugins->require_subcommand(1);

  auto listed = std::make_shared<JobArguments>();
  CLI::App* list = add_command(*plugins, "list", "Print every plugin found, and why others were refused", R"(
    altiplano plugins list
    altiplano plugins list --plugin-path my_plugins
    ALTIPLANO_PLUGIN_PATH=my_plugins altiplano plugins list)");
  add_plugin_path_argument(*list, *listed);
  on_run(list, exit_code, [listed] { return list_plugins(*listed); });

  auto shown = std::make_shared<InfoArguments>();
  CLI::App* info = add_command(*plugins, "info", "Print everything a plugin says of itself", R"(
    altiplano plugins info schedule/1f1b
    altiplano plugins info gpipe)");
  add_plugin_path_argument(*info, shown->job);
  info->add_option("name", shown->name, "Name of the plugin; the part before '/' may be left out where it is clear")
      ->required();
  on_run(info, exit_code, [shown] { return show_plugin(*shown); });

  auto checked = std::make_shared<CheckArguments>();
  CLI::App* check = add_command(*plugins, "check", "Hold a plugin to everything that its kind promises", R"(
    altiplano plugins check build/schedule-mine.so
    altiplano plugins check schedule/1f1b)");
  add_plugin_path_argument(*check, checked->job);
  check->add_option("file", checked->file, "A plugin's shared object, or the name of an installed one")->required();
  check->add_option("--timeout", checked->timeout_seconds, "Seconds that each check may take")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 86400.0));
  on_run(check, exit_code, [checked] { return check_plugin(*checked); });

  auto made = std::make_shared<NewArguments>();
  CLI::App* write =
      add_command(*plugins, "new", "Write a folder with a plugin that builds, passes its tests and runs", R"(
    altiplano plugins new schedule my_schedule
    altiplano plugins new op my_op --folder plugins/my_op)");
  write->add_option("kind", made->kind, "planner, schedule, comm, device, op, model or scheduler")->required();
  write->add_option("name", made->name, "Name of the plugin: lower-case letters, digits and '_'")->required();
  write->add_option("--folder", made->folder, "Where to write it; default: a folder of that name here");
  on_run(write, exit_code, [made] { return write_plugin(*made); });
}

}  // namespace altiplano
