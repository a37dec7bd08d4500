#include "framework/checkpoint/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

constexpr std::string_view kStepPrefix = "step-", kTemporaryPrefix = ".tmp-step-", kRetiredPrefix = ".old-";

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
std::string temporary_folder(const std::string& directory, int64_t step) {
  return fmt::format("{}/{}{}", directory, kTemporaryPrefix, step);
}
std::string retired_folder(const std::string& step_path) {
  std::filesystem::path path(step_path);
  return (path.parent_path() / fmt::format("{}{}", kRetiredPrefix, path.filename().string())).string();
}
std::string shard_name(int rank) {
  return fmt::format("rank-{:04}.h5", rank);
}
std::string shard_record_name(int rank) {
  return fmt::format("rank-{:04}.json", rank);
}

std::vector<StepFolder> list_step_folders(const std::string& directory) {
  std::vector<StepFolder> folders;
  for (const std::string& name : folder_names(directory)) {
    if (!name.starts_with(kStepPrefix)) continue;
    if (auto step = parse_int(name.substr(kStepPrefix.size())); step && *step >= 0)
      folders.push_back({*step, directory + "/" + name});
  }
  std::ranges::sort(folders, [](const StepFolder& a, const StepFolder& b) { return a.step > b.step; });
  return folders;
}

std::vector<std::string> list_leftovers(const std::string& directory) {
  std::vector<std::string> paths;
  for (const std::string& name : folder_names(directory)) {
    if (name.starts_with(kTemporaryPrefix) || name.starts_with(kRetiredPrefix)) paths.push_back(directory + "/" + name);
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace altiplano
