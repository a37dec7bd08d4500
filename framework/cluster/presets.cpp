#include "framework/cluster/presets.hpp"

#include <cstdlib>
#include <filesystem>
#include <set>

#include "framework/base/text.hpp"
#include "framework/storage/file_kind.hpp"
#include "framework/storage/input_file.hpp"

namespace altiplano {
namespace fs = std::filesystem;

std::vector<std::string> config_folders(const std::string& name) {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("ALTIPLANO_CONFIG_PATH"))
    for (const std::string& folder : split(path, ':'))
      if (!folder.empty()) folders.push_back(folder + "/" + name);
  std::error_code error;
  fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back((executable.parent_path().parent_path() / "share/altiplano/configs" / name).string());
  folders.push_back(ALTIPLANO_SOURCE_CONFIGS "/" + name);
  return folders;
}

std::vector<std::string> cluster_preset_folders() {
  return config_folders("clusters");
}

std::vector<std::string> cluster_preset_names() {
  std::set<std::string> names;
  for (const std::string& folder : cluster_preset_folders()) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      if (it->path().extension() == ".yaml") names.insert(it->path().stem().string());
  }
  return {names.begin(), names.end()};
}

static Result<Cluster> read_cluster_file(const std::string& path) {
  if (const Status kind = check_file_kind(path, FileKind::kCluster); !kind)
    return invalid_argument("cluster: {}", kind.message());
  auto text = read_input_file(path, kMostWrittenBytes);
  if (!text) return invalid_argument("cluster: {}", text.status().message());
  return Cluster::from_yaml(*text, path);
}

Result<Cluster> load_cluster(const std::string& name_or_path) {
  bool is_path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".yaml");
  if (is_path) return read_cluster_file(name_or_path);
  for (const std::string& folder : cluster_preset_folders()) {
    std::string path = folder + "/" + name_or_path + ".yaml";
    if (std::error_code error; fs::exists(path, error)) return read_cluster_file(path);
  }
  std::vector<std::string> names = cluster_preset_names();
  auto near = did_you_mean(name_or_path, names);
  return invalid_argument(
      "cluster: \"{}\" is no preset{}; presets: {}; a path with a '/' or ending in .yaml is read as a file (searched "
      "{})",
      name_or_path, near ? "; did you mean " + *near + "?" : "", names.empty() ? "none" : join(names, ", "),
      join(cluster_preset_folders(), ", "));
}

}  // namespace altiplano
