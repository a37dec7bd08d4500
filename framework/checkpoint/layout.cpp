#include "framework/checkpoint/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

constexpr std::string_view kStepPrefix = "step-", kTemporaryPrefix = ".tmp-step-", kRetiredPrefix = ".old-",
                           kAsidePrefix = ".aside-";

/// Names of the folders in a directory; none when it cannot be listed.
std::vector<std::string> folder_names(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.is_directory(error)) names.push_back(entry.path().filename().string());
  }
  return names;
}

}  // namespace

std::string step_folder(const std::string& directory, int64_t step) {
  return fmt::format("{}/{}{:08}", directory, kStepPrefix, step);
}
std::string temporary_folder(const std::string& directory, int64_t step, int64_t attempt) {
  return fmt::format("{}/{}{}{}", directory, kTemporaryPrefix, step, attempt > 1 ? fmt::format(".{}", attempt) : "");
}
std::string retired_folder(const std::string& step_path) {
  std::filesystem::path path(step_path);
  return (path.parent_path() / fmt::format("{}{}", kRetiredPrefix, path.filename().string())).string();
}
std::string aside_folder(const std::string& step_path) {
  std::filesystem::path path(step_path);
  return (path.parent_path() / fmt::format("{}{}", kAsidePrefix, path.filename().string())).string();
}
std::string shard_name(int rank) {
  return fmt::format("rank-{:04}.h5", rank);
}
std::string shard_record_name(int rank) {
  return fmt::format("rank-{:04}.json", rank);
}

std::optional<int64_t> named_step(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "step-00000120/"
  std::string name = folder.filename().string();
  if (name.starts_with(kAsidePrefix)) name = name.substr(kAsidePrefix.size());
  return name.starts_with(kStepPrefix) ? parse_int(name.substr(kStepPrefix.size())) : std::nullopt;
}

bool is_held_by_link(const std::string& step_path) {
  std::error_code error;
  if (std::filesystem::is_symlink(step_path, error)) return true;
  const std::filesystem::path parent = std::filesystem::path(step_path).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(parent.empty() ? "." : parent, error))
    if (entry.is_symlink(error) && std::filesystem::equivalent(entry.path(), step_path, error)) return true;
  return false;
}

std::vector<StepFolder> list_step_folders(const std::string& directory) {
  std::vector<StepFolder> folders;
  const std::vector<std::string> names = folder_names(directory);
  for (const std::string& name : names) {
    const bool is_aside = name.starts_with(kAsidePrefix);
    const std::string step_name = is_aside ? name.substr(kAsidePrefix.size()) : name;
    if (!step_name.starts_with(kStepPrefix)) continue;
    if (is_aside && std::ranges::find(names, step_name) != names.end()) continue;
    if (auto step = parse_int(step_name.substr(kStepPrefix.size())); step && *step >= 0)
      folders.push_back({*step, directory + "/" + name});
  }
  std::ranges::sort(folders, [](const StepFolder& a, const StepFolder& b) { return a.step > b.step; });
  return folders;
}

std::vector<std::string> list_leftovers(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_folder = name.starts_with(kTemporaryPrefix) || name.starts_with(kRetiredPrefix);
    const bool is_replaced = name.starts_with(kAsidePrefix) &&
                             std::filesystem::exists(directory + "/" + name.substr(kAsidePrefix.size()), error);
    if (is_folder || is_replaced || name.starts_with(std::string(kLatestName) + ".tmp-"))
      paths.push_back(directory + "/" + name);
  }
  std::ranges::sort(paths);
  return paths;
}

std::optional<int64_t> unfinished_step(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (!name.starts_with(kTemporaryPrefix)) return std::nullopt;
  const std::string numbers = name.substr(kTemporaryPrefix.size());
  return parse_int(numbers.substr(0, numbers.find('.')));
}

}  // namespace altiplano
