// altiplano ckpt: what checkpoints there are, what is in one, whether it is whole.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>

#include "framework/base/text.hpp"
#include "framework/base/units.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/restore.hpp"
#include "framework/cli/commands.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

struct CkptArguments {
  std::string path;
  bool show_plan = false;
};

std::string latest_name(const std::string& directory) {
  auto text = read_file(directory + "/" + kLatestName);
  return text ? trim(*text) : "";
}

Status list(const CkptArguments& arguments) {
  std::vector<StepFolder> folders = list_step_folders(arguments.path);
  if (folders.empty()) {
    return Status(StatusCode::kNoCheckpoint, fmt::format("{}: has no folder named step-<number>", arguments.path));
  }
  std::string latest = latest_name(arguments.path);
  fmt::print("{:>10}  {:>11}  {:>5}  {:<24} {}\n", "step", "size", "ranks", "run", "state");
  for (const StepFolder& folder : folders) {
    auto checkpoint = Checkpoint::open(folder.path, CheckLevel::kSizes);
    if (!checkpoint) {
      fmt::print("{:>10}  {:>11}  {:>5}  {:<24} damaged: {}\n", folder.step, "", "", "",
                 checkpoint.status().to_string());
      continue;
    }
    const Manifest& manifest = checkpoint->manifest();
    bool is_latest = fs::path(folder.path).filename() == latest;
    fmt::print("{:>10}  {:>11}  {:>5}  {:<24} complete{}\n", folder.step, to_string(Bytes(manifest.num_bytes())),
               manifest.info.world_size, manifest.info.run_id, is_latest ? ", latest" : "");
  }
  for (const std::string& path : list_leftovers(arguments.path)) fmt::print("unfinished  {}\n", path);
  return Status::ok();
}

/// A tensor as the manifest has it, over all shards.
struct TensorSummary {
  const PartRecord* first;
  int num_boxes;
};

void print_tensors(const Manifest& manifest) {
  std::map<std::string, TensorSummary> tensors;
  for (const ShardRecord& shard : manifest.shards) {
    for (const PartRecord& part : shard.parts)
      ++tensors.try_emplace(part.name, TensorSummary{&part, 0}).first->second.num_boxes;
  }
  fmt::print("tensors     {}\n", tensors.size());
  for (const auto& [name, summary] : tensors) {
    fmt::print("  {:<40} {:<5} {:<18} {:<16} {} box{}\n", name, to_string(summary.first->dtype),
               to_string(summary.first->global), summary.first->role, summary.num_boxes,
               summary.num_boxes == 1 ? "" : "es");
  }
}

Status inspect(const CkptArguments& arguments) {
  ALTIPLANO_ASSIGN(FoundCheckpoint found, find_checkpoint("", arguments.path, CheckLevel::kSizes));
  const Manifest& manifest = found.checkpoint->manifest();
  const CheckpointInfo& info = manifest.info;
  fmt::print("checkpoint  {}\n", found.checkpoint->path());
  fmt::print("step        {}, {} samples consumed\n", info.step, with_thousands(info.samples_consumed));
  fmt::print("run         {}, written by Altiplano {}\n", info.run_id, manifest.written_by);
  fmt::print("shards      {} of {} ranks, {}\n", manifest.shards.size(), info.world_size,
             to_string(Bytes(manifest.num_bytes())));
  fmt::print("model       {}\n", info.model_fingerprint);
  for (const auto& [field, value] : info.architecture) fmt::print("  {}: {}\n", field, value);
  fmt::print("state       {}\n", info.state);
  print_tensors(manifest);
  if (arguments.show_plan) fmt::print("plan\n{}", info.plan);
  return Status::ok();
}

/// One checkpoint, or all of a directory.
std::vector<std::string> checkpoints_at(const std::string& path) {
  std::vector<std::string> paths;
  for (const StepFolder& folder : list_step_folders(path)) paths.push_back(folder.path);
  return paths.empty() ? std::vector<std::string>{path} : paths;
}

Status verify(const CkptArguments& arguments) {
  size_t num_damaged = 0;
  std::vector<std::string> paths = checkpoints_at(arguments.path);
  for (const std::string& path : paths) {
    std::vector<std::string> problems = verify_checkpoint(path);
    fmt::print("{}: {}\n", path, problems.empty() ? "every byte as it was written" : "damaged");
    for (const std::string& problem : problems) fmt::print("  {}\n", problem);
    num_damaged += !problems.empty();
  }
  if (num_damaged == 0) return Status::ok();
  return runtime_failure("{} of {} checkpoints damaged", num_damaged, paths.size());
}

using Action = Status (*)(const CkptArguments&);

CLI::App* add_action(CLI::App& ckpt, int& exit_code, const std::string& name, const std::string& help,
                     const std::string& examples, const std::shared_ptr<CkptArguments>& arguments, Action action) {
  CLI::App* command = add_command(ckpt, name, help, examples);
  command->add_option("path", arguments->path, "A folder of checkpoints, or one checkpoint in it")->required();
  on_run(command, exit_code, [arguments, action] { return action(*arguments); });
  return command;
}

}  // namespace

void add_ckpt_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CkptArguments>();
  CLI::App* ckpt = add_command(app, "ckpt", "Look at checkpoints", R"(
    altiplano ckpt ls runs/quickstart/checkpoints
    altiplano ckpt inspect runs/quickstart/checkpoints/step-00000300
    altiplano ckpt verify runs/quickstart/checkpoints)");
  ckpt->require_subcommand(1);
  add_action(*ckpt, exit_code, "ls", "List the checkpoints of a folder, newest first", R"(
    altiplano ckpt ls runs/quickstart/checkpoints)",
             arguments, &list);
  CLI::App* shown = add_action(*ckpt, exit_code, "inspect", "Say what a checkpoint (of a folder: the newest) holds", R"(
    altiplano ckpt inspect runs/quickstart/checkpoints
    altiplano ckpt inspect runs/quickstart/checkpoints/step-00000300 --plan)",
                               arguments, &inspect);
  shown->add_flag("--plan", arguments->show_plan, "Print the plan it was trained under");
  add_action(*ckpt, exit_code, "verify", "Read every byte and compare it with the checksums; exit 1 on damage", R"(
    altiplano ckpt verify runs/quickstart/checkpoints)",
             arguments, &verify);
}

}  // namespace altiplano
