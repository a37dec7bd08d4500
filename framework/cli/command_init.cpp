// altiplano init: a first job that runs as it stands.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/config/job_template.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/runtime/data/token_file.hpp"
#include "framework/runtime/job.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

struct InitArguments {
  JobArguments job;  ///< its plugin path
  std::string model = "gpt", folder = ".", data;
  int ranks = 2;
};

/// Where the tokens come from and what the job must know of them.
struct InitData {
  std::string path;  ///< as the job file names it
  int64_t vocab_size = 257, num_tokens = 0;
};

struct InitSizes {
  int64_t batch = 0, sequence = 0;
};

constexpr double kValidationFraction = 0.1;

/// Tokens that a job of these sizes needs: one batch for a step and one sample for validation.
int64_t needed_tokens(const InitSizes& sizes) {
  auto validation = [](int64_t all) { return static_cast<int64_t>(static_cast<double>(all) * kValidationFraction); };
  int64_t samples = sizes.batch + 1;
  while (validation(samples) < 1 || samples - validation(samples) < sizes.batch) ++samples;
  return samples * sizes.sequence + 1;
}

/// A batch that the ranks can share, and the longest samples for which the data have enough of them.
Result<InitSizes> choose_sizes(const InitArguments& arguments, const InitData& data) {
  constexpr int64_t kBatch = 16;
  const int64_t ranks = arguments.ranks;
  InitSizes sizes;
  for (const int64_t batch : {(kBatch + ranks - 1) / ranks * ranks, ranks})
    for (const int64_t sequence : {64, 32, 16, 8}) {
      sizes = {batch, sequence};
      if (needed_tokens(sizes) <= data.num_tokens) return sizes;
    }
  return invalid_argument(
      "{}: has {}, a first job on {} needs {}: a step takes {} of {} tokens, and some are for "
      "validation; give --data with more text{}",
      data.path, counted(data.num_tokens, "token"), counted(ranks, "rank"), needed_tokens(sizes),
      counted(sizes.batch, "sample"), sizes.sequence, ranks == 1 ? "" : " or fewer ranks");
}

ChosenValues chosen_values(const InitArguments& arguments, const InitData& data, const InitSizes& sizes) {
  const std::string batch = fmt::to_string(sizes.batch), sequence = fmt::to_string(sizes.sequence);
  return {
      {"run.name", arguments.model},
      {"model.kind", arguments.model},
      {"model.num_hidden_layers", "4"},
      {"model.hidden_size", "128"},
      {"model.num_attention_heads", "4"},
      {"model.max_position_embeddings", sequence},
      {"model.vocab_size", fmt::format("{}", data.vocab_size)},
      {"data.train", yaml_value_text(data.path)},
      {"data.validation.fraction", fmt::to_string(kValidationFraction)},
      {"train.max_steps", "200"},
      {"train.global_batch_size", batch},
      {"train.seq_length", sequence},
      {"train.validate_every", "50"},
      {"optimizer.lr", "2e-3"},
      {"lr_scheduler.warmup_steps", "20"},
      {"lr_scheduler.min_lr", "2e-4"},
      {"checkpoint.every_steps", "50"},
      {"checkpoint.keep_last", "2"},
  };
}

Result<std::vector<OptionRecord>> all_records(const std::string& model) {
  ALTIPLANO_ASSIGN(const Model* plugin, PluginRegistry::instance().model(model));
  return job_records_with_model(plugin->option_records());
}

/// The text of the example: this program's own reference, until the user names something better.
Result<std::string> sample_text(const std::string& model) {
  ALTIPLANO_ASSIGN(const Model* plugin, PluginRegistry::instance().model(model));
  return reference_page(job_option_records(), {{model, plugin->option_records()}});
}

Status refuse_existing(const InitArguments& arguments, const std::vector<std::string>& files) {
  std::vector<std::string> existing;
  std::error_code error;
  for (const auto& file : files)
    if (fs::exists(fs::path(arguments.folder) / file, error)) existing.push_back(fs::path(arguments.folder) / file);
  if (existing.empty()) return Status::ok();
  return invalid_argument("{}: already there, and not overwritten; move {} away or give another folder",
                          join(existing, ", "), existing.size() == 1 ? "it" : "them");
}

Result<InitData> given_data(const InitArguments& arguments) {
  ALTIPLANO_ASSIGN(TokenFile file, TokenFile::open(arguments.data));
  const bool here = fs::path(arguments.folder).lexically_normal() == fs::path(".");
  return InitData{here ? arguments.data : fs::absolute(arguments.data).string(), file.info().vocab_size,
                  file.info().num_tokens};
}

/// What pack_sample() will write.
Result<InitData> sample_data(const InitArguments& arguments) {
  ALTIPLANO_ASSIGN(const std::string text, sample_text(arguments.model));
  return InitData{"data/sample.h5", make_byte_tokenizer()->vocab_size(), static_cast<int64_t>(text.size())};
}

Status pack_sample(const InitArguments& arguments, std::vector<std::string>& written) {
  const fs::path folder = arguments.folder;
  ALTIPLANO_ASSIGN(const std::string text, sample_text(arguments.model));
  ALTIPLANO_RETURN_IF_ERROR(write_named_file(folder / "data/sample.txt", text));
  PackOptions options;
  options.inputs = {folder / "data/sample.txt"};
  options.output = folder / "data/sample.h5";
  ALTIPLANO_RETURN_IF_ERROR(pack_text(options, *make_byte_tokenizer()).status());
  written.insert(written.end(), {"data/sample.txt", "data/sample.h5"});
  return Status::ok();
}

std::vector<std::string> head_of(const InitArguments& arguments) {
  const std::string job = arguments.model + ".yaml";
  return {fmt::format("{}: made by `altiplano init {}`. Lines that are comments show defaults.", job, arguments.model),
          fmt::format("  altiplano validate -n {} -c {}", arguments.ranks, job),
          fmt::format("  altiplano launch -n {} -c {}       on this machine", arguments.ranks, job),
          fmt::format("  sbatch {}.sbatch                   under Slurm", arguments.model)};
}

/// The text of the job file, which was read and planned as `altiplano validate` does.
Result<std::string> checked_job(const InitArguments& arguments, const std::vector<OptionRecord>& records,
                                const InitData& data) {
  ALTIPLANO_ASSIGN(const InitSizes sizes, choose_sizes(arguments, data));
  ChosenValues chosen = chosen_values(arguments, data, sizes);
  std::erase_if(chosen, [&](const auto& entry) {  // another model may have other keys
    return std::ranges::find(records, entry.first, &OptionRecord::key) == records.end();
  });
  const std::string text = commented_job(records, chosen, head_of(arguments));
  auto model_records = [](const std::string& kind, const auto&) -> Result<std::vector<OptionRecord>> {
    ALTIPLANO_ASSIGN(const Model* model, PluginRegistry::instance().model(kind));
    return model->option_records();
  };
  ALTIPLANO_ASSIGN(JobConfig job, load_job_config({.file = arguments.model + ".yaml", .text = text}, model_records));
  JobRequest request;
  request.num_ranks = arguments.ranks;
  ALTIPLANO_RETURN_IF_ERROR(prepare_job(std::move(job), request).status());
  return text;
}

Status init(const InitArguments& arguments) {
  use_plugin_path(arguments.job.plugin_path);
  const std::string job = arguments.model + ".yaml", script = arguments.model + ".sbatch";
  ALTIPLANO_ASSIGN(const std::vector<OptionRecord> records, all_records(arguments.model));
  std::vector<std::string> files = {job, script};
  if (arguments.data.empty()) files.insert(files.end(), {"data/sample.txt", "data/sample.h5"});
  ALTIPLANO_RETURN_IF_ERROR(refuse_existing(arguments, files));
  ALTIPLANO_ASSIGN(const InitData data, arguments.data.empty() ? sample_data(arguments) : given_data(arguments));
  ALTIPLANO_ASSIGN(const std::string text, checked_job(arguments, records, data));
  const fs::path folder = arguments.folder;
  std::error_code error;
  fs::create_directories(arguments.data.empty() ? folder / "data" : folder, error);
  if (error) return invalid_argument("{}: cannot be made: {}", folder.string(), error.message());
  std::vector<std::string> written = {job, script};
  if (arguments.data.empty()) ALTIPLANO_RETURN_IF_ERROR(pack_sample(arguments, written));
  ALTIPLANO_RETURN_IF_ERROR(write_named_file(folder / job, text));
  const ScriptFacts facts{arguments.model, job, shell_word(fs::read_symlink("/proc/self/exe").string()),
                          arguments.ranks};
  ALTIPLANO_RETURN_IF_ERROR(write_named_file(folder / script, job_script(facts)));
  const bool here = folder.lexically_normal() == fs::path(".");
  print_out("wrote     {}{}\n", join(written, ", "), here ? "" : " in " + folder.string());
  print_out("next      {}altiplano launch -n {} -c {}       or: sbatch {}\n",
            here ? "" : fmt::format("cd {}; ", shell_word(folder.string())), arguments.ranks, job, script);
  return Status::ok();
}

}  // namespace

void add_init_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<InitArguments>();
  CLI::App* command = add_command(app, "init", "Write a first job file and a script that runs it", R"(
    altiplano init
    altiplano init gpt --folder first-job --ranks 4
    altiplano init gpt --data data/kjv.h5)");
  command->add_option("model", arguments->model, "Model plugin (default gpt)");
  command->add_option("--folder", arguments->folder, "Where to write (default: here); made when it is missing")
      ->type_name("DIR");
  command->add_option("--data", arguments->data, "A file of `altiplano data pack`; without it a small one is made")
      ->type_name("FILE");
  command->add_option("-n,--ranks", arguments->ranks, "Ranks the script starts (default 2)")
      ->check(CLI::Range(1, 4096));
  add_plugin_path_argument(*command, arguments->job);
  on_run(command, exit_code, [arguments] { return init(*arguments); });
}

}  // namespace altiplano
