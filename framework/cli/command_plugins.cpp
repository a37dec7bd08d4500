// altiplano plugins: what the search path holds.
#include <fmt/format.h>

#include <memory>

#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/plugin/describe.hpp"

namespace altiplano {
namespace {

struct InfoArguments {
  JobArguments job;
  std::string name;
};

Status list_plugins(const JobArguments& arguments) {
  use_plugin_path(arguments.plugin_path);
  fmt::print("{}", plugin_list_text(PluginRegistry::instance().list()));
  return Status::ok();
}

Status show_plugin(const InfoArguments& arguments) {
  use_plugin_path(arguments.job.plugin_path);
  ALTIPLANO_ASSIGN(auto info, find_plugin_info(PluginRegistry::instance().list(), arguments.name));
  fmt::print("{}", plugin_info_text(info));
  return Status::ok();
}

}  // namespace

void add_plugins_command(CLI::App& app, int& exit_code) {
  CLI::App* plugins = add_command(app, "plugins", "List and describe plugins", R"(
    altiplano plugins list
    altiplano plugins info schedule/1f1b)");
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
}

}  // namespace altiplano
