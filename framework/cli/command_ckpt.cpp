// altiplano ckpt: what checkpoints there are, what is in one, whether it is whole.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/base/units.hpp"
#include "framework/checkpoint/compare.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/prune.hpp"
#include "framework/checkpoint/restore.hpp"
#include "framework/cli/commands.hpp"
#include "framework/runtime/resume_settings.hpp"
#include "framework/storage/atomic_file.hpp"
#include "framework/storage/file_kind.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

struct CkptArguments {
  std::string path, other;
  bool show_plan = false;
  double tolerance = 0;
  KeepRule keep;
  bool dry_run = false, damaged = false;
};

Status no_checkpoints_in(const std::string& path) {
  return {StatusCode::kNoCheckpoint, fmt::format("{}: has no folder named step-<number>", path)};
}

std::string latest_name(const std::string& directory) {
  auto text = read_file(directory + "/" + kLatestName);
  return text ? trim(*text) : "";
}

/// One checkpoint, or all of a directory.
std::vector<StepFolder> checkpoints_at(const std::string& path) {
  std::error_code error;
  if (named_step(path) || fs::exists(path + "/" + kManifestName, error)) return {{named_step(path).value_or(0), path}};
  return list_step_folders(path);
}

Status list(const CkptArguments& arguments) {
  const std::vector<StepFolder> folders = checkpoints_at(arguments.path);
  if (folders.empty()) return no_checkpoints_in(arguments.path);
  const bool is_one = folders[0].path == arguments.path;
  const std::string latest = is_one ? "" : latest_name(arguments.path);
  if (!is_one &&
      std::ranges::none_of(folders, [&](const StepFolder& f) { return fs::path(f.path).filename() == latest; }))
    print_out("note: {}/{} names {}, which is not there; a resume takes the newest complete one\n", arguments.path,
              kLatestName, latest.empty() ? "nothing" : latest);
  print_out("{:>10}  {:>11}  {:>5}  {:<24} {}\n", "step", "size", "ranks", "run", "state");
  for (const StepFolder& folder : folders) {
    auto checkpoint = Checkpoint::open(folder.path, CheckLevel::kSizes);
    if (!checkpoint) {
      print_out("{:>10}  {:>11}  {:>5}  {:<24} {}: {}\n", folder.step, "", "", "",
                is_misnamed(checkpoint.status()) ? "not counted" : "damaged", checkpoint.status().to_string());
      continue;
    }
    const Manifest& manifest = checkpoint->manifest();
    bool is_latest = fs::path(folder.path).filename() == latest;
    print_out("{:>10}  {:>11}  {:>5}  {:<24} complete{}\n", folder.step, to_string(Bytes(manifest.num_bytes())),
              manifest.info.world_size, manifest.info.run_id, is_latest ? ", latest" : "");
  }
  for (const std::string& path : list_leftovers(arguments.path))
    print_out("unfinished  {} ({})\n", path, unfinished_step(path) ? "a save" : "a removal");
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
  print_out("tensors     {}\n", tensors.size());
  for (const auto& [name, summary] : tensors) {
    print_out("  {:<40} {:<5} {:<18} {:<16} {}\n", name, to_string(summary.first->dtype),
              to_string(summary.first->global), summary.first->role, counted(summary.num_boxes, "box", "boxes"));
  }
}

void print_settings(const CheckpointInfo& info) {
  const Settings settings = settings_of(info.state);
  if (settings.empty())
    print_out("state       {}\n", info.state);
  else
    print_out("settings    what a resume compares\n");
  for (const auto& [key, value] : settings) print_out("  {}: {}\n", key, value);
}

Status inspect(const CkptArguments& arguments) {
  ALTIPLANO_ASSIGN(FoundCheckpoint found, find_checkpoint("", arguments.path, CheckLevel::kSizes));
  const Manifest& manifest = found.checkpoint->manifest();
  const CheckpointInfo& info = manifest.info;
  print_out("checkpoint  {}\n", found.checkpoint->path());
  print_out("step        {}, {} consumed\n", info.step, counted(info.samples_consumed, "sample"));
  print_out("run         {}, start {} of it, written by Altiplano {}\n", info.run_id, info.attempt,
            manifest.written_by);
  print_out("shards      {} of {}, {}\n", manifest.shards.size(), counted(info.world_size, "rank"),
            to_string(Bytes(manifest.num_bytes())));
  print_out("model       {}\n", info.model_fingerprint);
  for (const auto& [field, value] : info.architecture) print_out("  {}: {}\n", field, value);
  print_settings(info);
  print_tensors(manifest);
  if (arguments.show_plan) print_out("plan\n{}", info.plan);
  return Status::ok();
}

Status verify(const CkptArguments& arguments) {
  const std::vector<StepFolder> folders = checkpoints_at(arguments.path);
  size_t num_damaged = 0, num_checked = 0;
  for (const StepFolder& folder : folders) {
    if (output_error() != 0) break;  // nobody reads on
    const Status opened = Checkpoint::open(folder.path, CheckLevel::kSizes).status();
    if (is_misnamed(opened)) {
      print_out("{}: not counted\n  {}\n", folder.path, opened.to_string());
      continue;
    }
    const std::vector<std::string> problems = verify_checkpoint(folder.path);
    print_out("{}: {}\n", folder.path, problems.empty() ? "every byte as it was written" : "damaged");
    for (const std::string& problem : problems) print_out("  {}\n", problem);
    ++num_checked;
    num_damaged += !problems.empty();
  }
  if (num_checked == 0) return no_checkpoints_in(arguments.path);
  if (num_damaged == 0) return Status::ok();
  return runtime_failure("{} of {} damaged", num_damaged, counted(static_cast<int64_t>(num_checked), "checkpoint"));
}

/// One checkpoint, or the newest of a folder, every byte checked.
Result<Checkpoint> open_one(const std::string& path) {
  ALTIPLANO_ASSIGN(FoundCheckpoint found, find_checkpoint("", path, CheckLevel::kChecksums));
  return std::move(*found.checkpoint);
}

Status diff(const CkptArguments& arguments) {
  ALTIPLANO_ASSIGN(const Checkpoint first, open_one(arguments.path));
  ALTIPLANO_ASSIGN(const Checkpoint second, open_one(arguments.other));
  ALTIPLANO_ASSIGN(const CheckpointDifference difference, compare_checkpoints(first, second));
  print_out("first       {}\nsecond      {}\n", first.path(), second.path());
  for (const std::string& fact : difference.facts) print_out("  {}\n", fact);
  size_t num_beyond = 0;
  for (const TensorDifference& tensor : difference.tensors) {
    num_beyond += !tensor.what.empty() || tensor.largest > arguments.tolerance;
    print_out("  {:<40} {}\n", tensor.name,
              !tensor.what.empty() ? tensor.what
                                   : fmt::format("{} {}, by {:.3g} at most", counted(tensor.num_differing, "element"),
                                                 plural(tensor.num_differing, "differs", "differ"), tensor.largest));
  }
  print_out("tensors     {} of {} the same, bit by bit\n", difference.num_tensors - difference.tensors.size(),
            difference.num_tensors);
  if (num_beyond == 0) return Status::ok();
  return runtime_failure("{} of {} {} by more than {}", num_beyond,
                         counted(static_cast<int64_t>(difference.num_tensors), "tensor"),
                         plural(static_cast<int64_t>(num_beyond), "differs", "differ"), arguments.tolerance);
}

Status prune(const CkptArguments& arguments) {
  std::error_code error;
  if (fs::exists(arguments.path + "/" + kManifestName, error))
    return invalid_argument("{}: is one checkpoint; give the folder that they lie in", arguments.path);
  ALTIPLANO_ASSIGN(const PrunePlan plan, plan_prune(arguments.path, arguments.keep, arguments.damaged));
  const char* verb = arguments.dry_run ? "would remove" : "removed";
  if (!arguments.dry_run) ALTIPLANO_RETURN_IF_ERROR(prune_checkpoints(arguments.path, plan));
  Bytes freed;
  for (const PrunableCheckpoint& one : plan.removed) {
    print_out("{:<13} {}, {}\n", verb, one.path, to_string(Bytes(one.bytes)));
    freed += Bytes(one.bytes);
  }
  for (const SkippedCheckpoint& one : plan.damaged)
    print_out("{:<13} {}: {}\n", plan.removes_damaged ? verb : "damaged", one.path, one.reason);
  for (const SkippedCheckpoint& one : plan.misnamed) print_out("{:<13} {}\n", "not counted", one.reason);
  for (const PrunableCheckpoint& one : plan.kept) print_out("{:<13} {}\n", "kept", one.path);
  print_out("{:<13} {} of {}, {}\n", "in all", plan.removed.size(), plan.removed.size() + plan.kept.size(),
            to_string(freed));
  return Status::ok();
}

using CkptAction = Status (*)(const CkptArguments&);

Status check_is_folder(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return invalid_argument("{}: there is no such folder", path);
  if (error) return invalid_argument("{}: cannot be read: {}", path, error.message());
  if (fs::is_directory(status)) return check_file_kind(path, FileKind::kCheckpoint);
  return invalid_argument("{}: is no folder; a checkpoint is a folder named step-<number>", path);
}

Status act(const CkptArguments& arguments, CkptAction action) {
  for (const std::string& path : {arguments.path, arguments.other})
    if (!path.empty()) ALTIPLANO_RETURN_IF_ERROR(check_is_folder(path));
  return action(arguments);
}

CLI::App* add_action(CLI::App& ckpt, int& exit_code, const std::string& name, const std::string& help,
                     const std::string& examples, const std::shared_ptr<CkptArguments>& arguments, CkptAction action) {
  CLI::App* command = add_command(ckpt, name, help, examples);
  const char* what = action == &prune ? "A folder of checkpoints" : "A folder of checkpoints, or one checkpoint in it";
  command->add_option("path", arguments->path, what)->required();
  on_run(command, exit_code, [arguments, action] { return act(*arguments, action); });
  return command;
}

}  // namespace

void add_ckpt_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CkptArguments>();
  CLI::App* ckpt = add_command(app, "ckpt", "Look at checkpoints", R"(
    altiplano ckpt ls runs/quickstart/checkpoints
    altiplano ckpt inspect runs/quickstart/checkpoints/step-00000300
    altiplano ckpt verify runs/quickstart/checkpoints
    altiplano ckpt diff runs/a/checkpoints runs/b/checkpoints
    altiplano ckpt prune runs/quickstart/checkpoints --keep-last 2 --dry-run)");
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
  CLI::App* compared = add_action(*ckpt, exit_code, "diff",
                                  "Compare two checkpoints, whatever plans wrote them; exit 1 when tensors differ", R"(
    altiplano ckpt diff runs/a/checkpoints/step-00000400 runs/b/checkpoints/step-00000400
    altiplano ckpt diff runs/a/checkpoints runs/b/checkpoints --tolerance 1e-6)",
                                  arguments, &diff);
  compared->add_option("other", arguments->other, "What to compare it with")->required();
  compared->add_option("--tolerance", arguments->tolerance, "Largest |a - b| that counts as equal (default 0)")
      ->check(CLI::NonNegativeNumber);
  CLI::App* pruned =
      add_action(*ckpt, exit_code, "prune", "Remove old checkpoints; the newest one that is whole always stays", R"(
    altiplano ckpt prune runs/quickstart/checkpoints --keep-last 2 --dry-run
    altiplano ckpt prune runs/quickstart/checkpoints --keep-last 2 --keep-every 1000)",
                 arguments, &prune);
  pruned->add_option("--keep-last", arguments->keep.last, "Newest ones that stay")
      ->required()
      ->check(CLI::Range(1, 1000000));
  pruned->add_option("--keep-every", arguments->keep.every, "Steps that are multiples of this stay too")
      ->check(CLI::Range(1, 1000000000));
  pruned->add_flag("--damaged", arguments->damaged, "Remove those that are damaged, too");
  pruned->add_flag("--dry-run", arguments->dry_run, "Only show what would be removed");
}

}  // namespace altiplano
