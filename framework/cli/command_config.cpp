// altiplano config: what a job file means.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/config/foreign_keys.hpp"
#include "framework/config/job_schema.hpp"
#include "framework/config/provenance.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano {
namespace {

using ModelTables = std::map<std::string, std::vector<OptionRecord>>;

struct ShowArguments {
  JobArguments job;
  bool origin = false;
};

struct DiffArguments {
  JobArguments job;
  std::string first, second;
};

Status show(const ShowArguments& arguments) {
  ALTIPLANO_ASSIGN(JobConfig job, load_job(arguments.job));
  print_out("{}", job_text(job.options, arguments.origin));
  return Status::ok();
}

/// Records of every model plugin found.
Result<ModelTables> model_tables(const JobArguments& arguments) {
  use_plugin_path(arguments.plugin_path);
  ModelTables models;
  for (const auto& plugin : PluginRegistry::instance().list()) {
    if (!plugin.refusal.empty() || plugin.kind != Model::kKind) continue;
    ALTIPLANO_ASSIGN(const Model* model, PluginRegistry::instance().model(plugin.name));
    models[plugin.name.substr(plugin.name.find('/') + 1)] = model->option_records();
  }
  return models;
}

Status print_reference(const JobArguments& arguments) {
  ALTIPLANO_ASSIGN(const ModelTables models, model_tables(arguments));
  print_out("{}{}", reference_page(job_option_records(), models), foreign_key_tables());
  return Status::ok();
}

Status print_schema(const JobArguments& arguments) {
  ALTIPLANO_ASSIGN(const ModelTables models, model_tables(arguments));
  print_out("{}", job_schema(job_option_records(), models, job_shorthands(), foreign_keys()));
  return Status::ok();
}

/// A job file, or the newest start of a run's folder.
Result<JobConfig> load_side(const DiffArguments& arguments, const std::string& path) {
  JobArguments side = arguments.job;
  side.file = path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    side.file = newest_effective_config(path);
    if (side.file.empty()) return invalid_argument("{}: a folder without provenance of a run; name a job file", path);
  }
  return load_job(side);
}

Status diff(const DiffArguments& arguments) {
  ALTIPLANO_ASSIGN(const JobConfig first, load_side(arguments, arguments.first));
  ALTIPLANO_ASSIGN(const JobConfig second, load_side(arguments, arguments.second));
  const std::string text = config_difference(first.options, second.options);
  print_out("{}", text.empty() ? "no key has another value\n" : text);
  return Status::ok();
}

CLI::App* add_print_command(CLI::App& config, int& exit_code, const char* name, const char* help, const char* examples,
                            Status (*print)(const JobArguments&)) {
  auto arguments = std::make_shared<JobArguments>();
  CLI::App* command = add_command(config, name, help, examples);
  add_plugin_path_argument(*command, *arguments);
  on_run(command, exit_code, [arguments, print] { return print(*arguments); });
  return command;
}

void add_show(CLI::App& config, int& exit_code) {
  auto shown = std::make_shared<ShowArguments>();
  CLI::App* command =
      add_command(config, "show", "Print the effective value of every key, as a job file that loads again", R"(
    altiplano config show -c configs/jobs/quickstart.yaml
    altiplano config show -c configs/jobs/quickstart.yaml --origin
    altiplano config show -c configs/jobs/quickstart.yaml --set train.max_steps=20 > short.yaml)");
  add_job_arguments(*command, shown->job);
  command->add_flag("--origin", shown->origin,
                    "Say where each value comes from: file, --set, variables, another name, another key, default");
  on_run(command, exit_code, [shown] { return show(*shown); });
}

void add_diff(CLI::App& config, int& exit_code) {
  auto compared = std::make_shared<DiffArguments>();
  CLI::App* command = add_command(config, "diff", "Print the keys whose effective values differ between two jobs", R"(
    altiplano config diff configs/jobs/quickstart.yaml configs/jobs/gpt2_124m.yaml
    altiplano config diff runs/quickstart configs/jobs/quickstart.yaml)");
  command->add_option("first", compared->first, "A job file, or the folder of a run (its newest start)")->required();
  command->add_option("second", compared->second, "The other")->required();
  add_plugin_path_argument(*command, compared->job);
  on_run(command, exit_code, [compared] { return diff(*compared); });
}

}  // namespace

void add_config_command(CLI::App& app, int& exit_code) {
  CLI::App* config = add_command(app, "config", "Show, compare and explain job files", R"(
    altiplano config show -c configs/jobs/quickstart.yaml --origin
    altiplano config diff runs/quickstart configs/jobs/quickstart.yaml
    altiplano config schema > job.schema.json
    altiplano config reference > docs/reference/config.md)");
  config->require_subcommand(1);
  add_show(*config, exit_code);
  add_diff(*config, exit_code);
  add_print_command(*config, exit_code, "schema", "Print a JSON schema of job files, for editors", R"(
    altiplano config schema > job.schema.json
    altiplano config schema --plugin-path my_plugins)",
                    &print_schema);
  add_print_command(*config, exit_code, "reference", "Print the reference of all keys as Markdown", R"(
    altiplano config reference > docs/reference/config.md
    altiplano config reference --plugin-path my_plugins)",
                    &print_reference);
}

}  // namespace altiplano
