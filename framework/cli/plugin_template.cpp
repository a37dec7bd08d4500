#include "framework/cli/plugin_template.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/base/text.hpp"
#include "framework/cluster/presets.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

Status check_kind(const std::string& kind) {
  std::vector<std::string> kinds;
  for (uint32_t k = ALTIPLANO_PLUGIN_PLANNER; plugin_kind_name(k) != nullptr; ++k)
    kinds.emplace_back(plugin_kind_name(k));
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return Status::ok();
  const auto near = did_you_mean(kind, kinds);
  return invalid_argument("no kind of plugin {}{}; there is: {}", kind,
                          near ? fmt::format(", did you mean {}?", *near) : "", join(kinds, ", "));
}

Status check_name(const std::string& name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool is_identifier = !name.empty() && is_letter(name[0]) &&
                             std::all_of(name.begin(), name.end(),
                                         [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }) &&
                             name.find("__") == std::string::npos && name.back() != '_';
  if (!is_identifier)
    return invalid_argument(
        "'{}' is no name for a plugin: lower-case letters, digits and single '_' inside, a letter first, as in "
        "my_planner",
        name);
  return Status::ok();
}

Status check_is_new(const std::string& full_name) {
  for (const PluginInfo& info : PluginRegistry::instance().list())
    if (info.name == full_name && info.refusal.empty())
      return invalid_argument("{} is there already: {}; choose another name", full_name, info.path);
  return Status::ok();
}

Status check_folder(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return Status::ok();
  if (!fs::is_directory(folder, error)) return invalid_argument("{}: is there already and no folder", folder);
  if (!fs::is_empty(folder, error)) return invalid_argument("{}: is there already and not empty", folder);
  return Status::ok();
}

Result<std::string> template_folder(const std::string& kind) {
  const auto folders = config_folders("plugin_templates");
  for (const std::string& folder : folders) {
    std::error_code error;
    if (fs::is_directory(folder + "/" + kind, error)) return folder + "/" + kind;
  }
  return invalid_argument("no templates of plugins; searched {}", join(folders, ", "));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// "my_planner" -> "MyPlanner".
std::string type_name(const std::string& name) {
  std::string type;
  for (const std::string& word : split(name, '_')) {
    type += word;
    char& first = type[type.size() - word.size()];
    first = static_cast<char>(std::toupper(first));
  }
  return type;
}

std::string upper(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

Status write_file(const fs::path& source, const fs::path& target, const std::string& name) {
  std::ifstream in(source);
  std::stringstream text;
  text << in.rdbuf();
  std::ofstream out(target);
  out << replaced(replaced(replaced(text.str(), "@name@", name), "@Name@", type_name(name)), "@NAME@", upper(name));
  out.close();
  if (in && out) return Status::ok();
  return runtime_failure("{}: cannot be written: {}", target.string(), std::strerror(errno));
}

}  // namespace

Result<std::vector<std::string>> write_new_plugin(const std::string& kind, const std::string& name,
                                                  const std::string& folder) {
  ALTIPLANO_RETURN_IF_ERROR(check_kind(kind));
  ALTIPLANO_RETURN_IF_ERROR(check_name(name));
  ALTIPLANO_RETURN_IF_ERROR(check_is_new(kind + "/" + name));
  ALTIPLANO_RETURN_IF_ERROR(check_folder(folder));
  ALTIPLANO_ASSIGN(const std::string templates, template_folder(kind));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return invalid_argument("{}: cannot be made: {}", folder, error.message());
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(templates)) {
    const std::string file = replaced(entry.path().filename().string(), "NAME", name);
    ALTIPLANO_RETURN_IF_ERROR(write_file(entry.path(), fs::path(folder) / file, name));
    files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace altiplano
