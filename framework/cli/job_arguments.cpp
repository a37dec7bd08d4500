#include "framework/cli/job_arguments.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "framework/base/console.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano {

void add_job_arguments(CLI::App& command, JobArguments& arguments, JobFile file) {
  const char* const names = file == JobFile::kPositionalToo ? "-c,--config,job" : "-c,--config";
  command.add_option(names, arguments.file, "Job file (YAML)")->required()->type_name("FILE");
  command
      .add_option("--set", arguments.overrides, "Override one key of the job file, e.g. train.max_steps=20; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_plugin_path_argument(command, arguments);
}

void add_plugin_path_argument(CLI::App& command, JobArguments& arguments) {
  command.add_option("--plugin-path", arguments.plugin_path, "Folder with plugins, searched first; repeatable")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory)
      ->allow_extra_args(false);
}

void use_plugin_path(const std::vector<std::string>& folders) {
  for (const auto& folder : folders) PluginRegistry::instance().add_search_path(folder);
}

Result<JobConfig> load_job(const JobArguments& arguments, bool prints_notices) {
  use_plugin_path(arguments.plugin_path);
  auto model_records = [](const std::string& kind,
                          const std::vector<std::string>& plugin_path) -> Result<std::vector<OptionRecord>> {
    use_plugin_path(plugin_path);
    ALTIPLANO_ASSIGN(const Model* model, PluginRegistry::instance().model(kind));
    return model->option_records();
  };
  ALTIPLANO_ASSIGN(JobConfig job, load_job_config({.file = arguments.file,
                                                   .overrides = arguments.overrides,
                                                   .flags = arguments.flags,
                                                   .uses_validation = arguments.uses_validation},
                                                  model_records));
  const auto& folders = job.options.get_strings("plugins.path");
  for (size_t i = 0; i < folders.size(); ++i)
    if (std::error_code error; !std::filesystem::is_directory(folders[i], error))
      return invalid_argument("{}: {} is no folder", job.options.where("plugins.path", i), folders[i]);
  if (prints_notices) print_notices(job.notices);
  return job;
}

void print_notices(const std::vector<std::string>& notices) {
  for (const auto& notice : notices) print_err("note: {}\n", notice);
}

Status check_output_files(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (output.path.empty()) continue;
    std::error_code error;
    for (const NamedFile& input : inputs)
      if (std::filesystem::equivalent(output.path, input.path, error))
        return invalid_argument("{} {}: is {}", output.name, output.path, input.name);
    for (size_t j = 0; j < i; ++j)
      if (output.path == outputs[j].path || std::filesystem::equivalent(output.path, outputs[j].path, error))
        return invalid_argument("{} {}: is the file of {}", output.name, output.path, outputs[j].name);
    if (const Status status = check_replaceable(output.path, output.kind); !status.is_ok())
      return invalid_argument("{} {}", output.name, status.message());
  }
  return Status::ok();
}

std::string shell_word(const std::string& text) {
  constexpr const char* kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=:,@%+";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string::npos) return text;
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void add_train_start(CLI::App& command, TrainStart& start) {
  command.add_option("--resume", start.resume, "auto, must, none or the path of a checkpoint; overrides train.resume");
  command.add_option("--plan", start.plan_file, "Replay this plan instead of planning")->type_name("FILE");
}

void add_start_options(std::vector<std::string>& command, const TrainStart& start) {
  if (!start.resume.empty()) command.insert(command.end(), {"--resume", start.resume});
  if (!start.plan_file.empty()) command.insert(command.end(), {"--plan", start.plan_file});
}

Result<JobConfig> load_training_job(JobArguments arguments, const TrainStart& start, bool prints_notices) {
  if (!start.resume.empty()) arguments.flags.emplace_back("--resume", "train.resume=" + start.resume);
  ALTIPLANO_ASSIGN(JobConfig config, load_job(arguments, prints_notices));
  ALTIPLANO_RETURN_IF_ERROR(require_keys(config, {"data.train"}, "train"));
  return config;
}

}  // namespace altiplano
