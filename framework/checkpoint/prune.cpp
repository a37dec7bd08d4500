#include "framework/checkpoint/prune.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "framework/base/text.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/save.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

/// The checkpoints of one run that can be read, by age.
using Run = std::map<CheckpointAge, PrunableCheckpoint>;

std::map<std::string, Run> runs_in(const std::string& directory, PrunePlan& plan) {
  std::map<std::string, Run> runs;
  for (const StepFolder& folder : list_step_folders(directory)) {
    auto checkpoint = Checkpoint::open(folder.path, CheckLevel::kSizes);
    if (!checkpoint) {
      auto& list = is_misnamed(checkpoint.status()) ? plan.misnamed : plan.damaged;
      list.push_back({folder.path, folder.step, checkpoint.status().to_string()});
      continue;
    }
    const Manifest& manifest = checkpoint->manifest();
    runs[manifest.info.run_id][{manifest.info.attempt, manifest.info.step}] = {folder.path, manifest.info.step,
                                                                               manifest.num_bytes()};
  }
  return runs;
}

/// Newest first, until one is whole; those before it move from the run to the damaged. Nothing when none is whole.
std::optional<CheckpointAge> newest_whole(Run& run, std::vector<SkippedCheckpoint>& damaged) {
  while (!run.empty()) {
    auto newest = std::prev(run.end());
    auto opened = Checkpoint::open(newest->second.path, CheckLevel::kChecksums);
    if (opened) return newest->first;
    damaged.push_back({newest->second.path, newest->second.step, opened.status().to_string()});
    run.erase(newest);
  }
  return std::nullopt;
}

void sort_newest_first(std::vector<PrunableCheckpoint>& checkpoints) {
  std::ranges::sort(checkpoints, std::greater(), &PrunableCheckpoint::step);
}

}  // namespace

Result<PrunePlan> plan_prune(const std::string& directory, const KeepRule& rule, bool removes_damaged) {
  PrunePlan plan;
  auto runs = runs_in(directory, plan);
  std::vector<std::string> without;  // runs without a whole one
  for (auto& [run_id, run] : runs) {
    if (!newest_whole(run, plan.damaged)) without.push_back(run_id);
    std::vector<CheckpointAge> ages;
    for (const auto& [age, checkpoint] : run) ages.push_back(age);
    for (const CheckpointAge& age : ages_to_remove(ages, rule)) {
      if (is_held_by_link(run.at(age).path)) continue;
      plan.removed.push_back(run.at(age));
      run.erase(age);
    }
    for (const auto& [age, checkpoint] : run) plan.kept.push_back(checkpoint);
  }
  if (plan.kept.empty() && plan.damaged.empty())
    return Status(StatusCode::kNoCheckpoint, fmt::format("{}: has no folder named step-<number>", directory));
  if (without.size() == runs.size())
    return Status(StatusCode::kNoCheckpoint,
                  fmt::format("{}: {}; nothing is removed", directory,
                              plan.damaged.size() == 1
                                  ? "its only checkpoint is not whole"
                                  : fmt::format("none of its {} checkpoints is whole", plan.damaged.size())));
  if (removes_damaged && !without.empty())
    return Status(StatusCode::kNoCheckpoint,
                  fmt::format("{}: run {} has no checkpoint that is whole, so that its damaged ones stay; leave out "
                              "--damaged",
                              directory, join(without, ", ")));
  plan.removes_damaged = removes_damaged;
  sort_newest_first(plan.kept);
  sort_newest_first(plan.removed);
  return plan;
}

Status prune_checkpoints(const std::string& directory, const PrunePlan& plan) {
  // First, so that it never names what is not there.
  const std::string latest = directory + "/" + kLatestName;
  auto named = read_file(latest);
  auto is_named = [&](const PrunableCheckpoint& one) {
    return named && std::filesystem::path(one.path).filename() == trim(*named);
  };
  if (std::ranges::none_of(plan.kept, is_named))
    ALTIPLANO_RETURN_IF_ERROR(
        write_file_atomically(latest, std::filesystem::path(plan.kept[0].path).filename().string() + "\n"));
  for (const PrunableCheckpoint& one : plan.removed) ALTIPLANO_RETURN_IF_ERROR(remove_checkpoint(one.path));
  if (!plan.removes_damaged) return Status::ok();
  for (const SkippedCheckpoint& one : plan.damaged)
    if (!is_held_by_link(one.path)) ALTIPLANO_RETURN_IF_ERROR(remove_checkpoint(one.path));
  return Status::ok();
}

}  // namespace altiplano
