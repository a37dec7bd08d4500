#pragma once
// Names of files and folders of a checkpoint directory, and what lies in one.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace altiplano {

std::string step_folder(const std::string& directory, int64_t step);  ///< "<directory>/step-00000120"
/// "<directory>/.tmp-step-120", of later starts of the run "<directory>/.tmp-step-120.2": what an earlier one that was
/// cut off still writes is not mixed with theirs.
std::string temporary_folder(const std::string& directory, int64_t step, int64_t attempt = 1);
std::string retired_folder(const std::string& step_path);  ///< "<directory>/.old-step-00000120": being removed
std::string aside_folder(const std::string& step_path);    ///< "<directory>/.aside-step-00000120": being replaced
std::string shard_name(int rank);                          ///< "rank-0003.h5"
std::string shard_record_name(int rank);                   ///< "rank-0003.json"
/// The step that a folder's name says; nothing for folders of other names.
std::optional<int64_t> named_step(const std::string& path);
/// Whether a checkpoint is a symbolic link, or one in its directory points to it: such links are a person's, neither
/// they nor what they point to is ever removed.
bool is_held_by_link(const std::string& step_path);
inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kIndexName = "index.h5";
inline constexpr const char* kLatestName = "latest";

struct StepFolder {
  int64_t step = 0;
  std::string path;
};
/// Folders named step-<number>, largest number (not text) first; complete or not. A missing directory has none. A
/// folder that stepped aside for one that never came counts as if it had stayed.
std::vector<StepFolder> list_step_folders(const std::string& directory);
/// What saves and removals that never finished have left: folders, and the temporary file of `latest`.
std::vector<std::string> list_leftovers(const std::string& directory);
/// Whether a leftover is a save that never finished, whose step it has.
std::optional<int64_t> unfinished_step(const std::string& path);

}  // namespace altiplano
