// altiplano config: what a job file means.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano {
namespace {

struct ShowArguments {
  JobArguments job;
  bool origin = false;
};

Status show(const ShowArguments& arguments) {
  ALTIPLANO_ASSIGN(JobConfig job, load_job(arguments.job));
  fmt::print("{}", job_text(job.options, arguments.origin));
  return Status::ok();
}

Status print_reference(const JobArguments& arguments) {
  use_plugin_path(arguments.plugin_path);
  std::map<std::string, std::vector<OptionRecord>> models;
  for (const auto& plugin : PluginRegistry::instance().list()) {
    if (!plugin.refusal.empty() || plugin.kind != Model::kKind) continue;
    ALTIPLANO_ASSIGN(const Model* model, PluginRegistry::instance().model(plugin.name));
    models[plugin.name.substr(plugin.name.find('/') + 1)] = model->option_records();
  }
  fmt::print("{}", reference_page(job_option_records(), models));
  return Status::ok();
}

}  // namespace

void add_config_command(CLI::App& app, int& exit_code) {
  CLI::App* config = add_command(app, "config", "Show and explain job files", R"(
    altiplano config show -c configs/jobs/quickstart.yaml --origin
    altiplano config reference > docs/reference/config.md)");
  config->require_subcommand(1);

  auto shown = std::make_shared<ShowArguments>();
  CLI::App* show_command =
      add_command(*config, "show", "Print the effective value of every key, as a job file that loads again", R"(
    altiplano config show -c configs/jobs/quickstart.yaml
    altiplano config show -c configs/jobs/quickstart.yaml --origin
    altiplano config show -c configs/jobs/quickstart.yaml --set train.max_steps=20 > short.yaml)");
  add_job_arguments(*show_command, shown->job);
  show_command->add_flag("--origin", shown->origin,
                         "Say where each value comes from: file, --set, another key, default");
  on_run(show_command, exit_code, [shown] { return show(*shown); });

  auto reference = std::make_shared<JobArguments>();
  CLI::App* reference_command = add_command(*config, "reference", "Print the reference of all keys as Markdown", R"(
    altiplano config reference > docs/reference/config.md
    altiplano config reference --plugin-path my_plugins)");
  add_plugin_path_argument(*reference_command, *reference);
  on_run(reference_command, exit_code, [reference] { return print_reference(*reference); });
}

}  // namespace altiplano
