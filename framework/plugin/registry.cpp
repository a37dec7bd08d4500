#include "framework/plugin/registry.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include "framework/base/text.hpp"
#include "framework/graph/op_definition.hpp"
#include "framework/plugin/loader.hpp"

namespace altiplano {
namespace {

std::vector<std::string> default_search_path() {
  std::vector<std::string> directories;
  if (const char* variable = std::getenv("ALTIPLANO_PLUGIN_PATH")) {
    for (const auto& directory : split(variable, ':')) {
      if (!directory.empty()) directories.push_back(directory);
    }
  }
  directories.push_back(directory_of_this_library() + "/altiplano/plugins");
  return directories;
}

std::string canonical_path(const std::string& path) {
  std::error_code error;
  auto canonical = std::filesystem::canonical(path, error);
  return error ? path : canonical.string();
}

/// The *.so files of a directory in order of their names; none if it is not there.
std::vector<std::string> plugin_files(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".so") files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string file_name_of(const std::string& full_name) {
  std::string name = full_name;
  std::replace(name.begin(), name.end(), '/', '-');
  return name + ".so";
}

}  // namespace

struct PluginRegistry::State {
  std::mutex mutex;
  std::vector<std::string> added, path = default_search_path();
  bool is_searched = false;
  std::optional<Status> ops_added;  ///< how adding the ops of all extensions went; it is done once
  std::set<std::string> seen;       ///< canonical paths, so that a directory named twice is no duplicate
  std::vector<LoadedPlugin> plugins;
  std::vector<PluginInfo> infos;  ///< same order as `plugins`

  const LoadedPlugin* find(const std::string& full_name) const {
    auto at = std::find_if(plugins.begin(), plugins.end(), [&](const LoadedPlugin& plugin) {
      return plugin.info.name == full_name && plugin.info.refusal.empty();
    });
    return at == plugins.end() ? nullptr : &*at;
  }

  Result<PluginInfo> load(const std::string& file);
  void forget_refused(const std::string& file);  ///< before it is tried again
  void search();
  Result<void*> object(uint32_t kind, const std::string& name);
  Status add_ops() const;
  Status unknown(const std::string& kind, const std::string& full_name) const;
};

void PluginRegistry::State::forget_refused(const std::string& file) {
  std::erase_if(plugins,
                [&](const LoadedPlugin& plugin) { return !plugin.info.refusal.empty() && plugin.info.path == file; });
  std::erase_if(infos, [&](const PluginInfo& info) { return !info.refusal.empty() && info.path == file; });
}

Result<PluginInfo> PluginRegistry::State::load(const std::string& file) {
  std::string canonical = canonical_path(file);
  for (const auto& plugin : plugins) {
    if (plugin.info.refusal.empty() && canonical_path(plugin.info.path) == canonical) return plugin.info;
  }
  LoadedPlugin plugin;
  Status status = load_plugin(file, plugin);
  if (const LoadedPlugin* other = status.is_ok() ? find(plugin.info.name) : nullptr) {
    status = invalid_argument("{}: found a second {}; the first is {}; needed: one file per name on the search path",
                              file, plugin.info.name, other->info.path);
    plugin.info.refusal = status.message();
    plugin.descriptor->destroy(plugin.object);
    plugin.object = nullptr;
  }
  seen.insert(canonical);
  forget_refused(file);
  plugins.push_back(plugin);
  infos.push_back(plugin.info);
  if (!status.is_ok()) return status;
  return plugin.info;
}

void PluginRegistry::State::search() {
  if (is_searched) return;
  is_searched = true;
  for (const auto& directory : path) {
    for (const auto& file : plugin_files(directory)) {
      // A refused plugin is kept in the list with its reason.
      if (!seen.contains(canonical_path(file))) (void)load(file);
    }
  }
}

Status PluginRegistry::State::unknown(const std::string& kind, const std::string& full_name) const {
  std::vector<std::string> names;
  for (const auto& info : infos) {
    if (info.refusal.empty() && info.name.starts_with(kind + "/")) names.push_back(info.name);
    bool was_meant = info.name == full_name || std::filesystem::path(info.path).filename() == file_name_of(full_name);
    if (!info.refusal.empty() && was_meant)
      return invalid_argument("plugin {} was found but refused: {}", full_name, info.refusal);
  }
  auto suggestion = did_you_mean(full_name, names);
  return invalid_argument("no plugin {}{}; there is: {}; searched: {}", full_name,
                          suggestion ? fmt::format(", did you mean {}?", *suggestion) : "",
                          names.empty() ? "none" : join(names, ", "), join(path, ", "));
}

Result<void*> PluginRegistry::State::object(uint32_t kind, const std::string& name) {
  std::lock_guard lock(mutex);
  search();
  std::string kind_name = plugin_kind_name(kind);
  if (auto slash = name.find('/'); slash != std::string::npos && name.substr(0, slash) != kind_name) {
    return invalid_argument("plugin {} is a {}; needed: a {} ('{}/<name>')", name, name.substr(0, slash), kind_name,
                            kind_name);
  }
  std::string full_name = name.find('/') == std::string::npos ? kind_name + "/" + name : name;
  if (const LoadedPlugin* plugin = find(full_name)) return plugin->object;
  return unknown(kind_name, full_name);
}

PluginRegistry::PluginRegistry() : state_(std::make_unique<State>()) {}

PluginRegistry::~PluginRegistry() {
  for (auto& plugin : state_->plugins) {
    if (plugin.object != nullptr) plugin.descriptor->destroy(plugin.object);
  }
}

PluginRegistry& PluginRegistry::instance() {
  static auto* registry =
      new PluginRegistry();  // never destroyed: its objects may be in use by threads until the process ends
  return *registry;
}

void PluginRegistry::add_search_path(const std::string& directory) {
  std::lock_guard lock(state_->mutex);
  auto& path = state_->path;
  path.insert(path.begin() + static_cast<int64_t>(state_->added.size()), directory);
  state_->added.push_back(directory);
  state_->is_searched = false;
}

Result<PluginInfo> PluginRegistry::load_file(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  return state_->load(path);
}

const std::vector<PluginInfo>& PluginRegistry::list() {
  std::lock_guard lock(state_->mutex);
  state_->search();
  return state_->infos;
}

const std::vector<std::string>& PluginRegistry::search_path() {
  return state_->path;
}

template <typename Interface>
static Result<Interface*> cast(Result<void*> object) {
  if (!object.is_ok()) return object.status();
  return static_cast<Interface*>(*object);
}

Result<const Planner*> PluginRegistry::planner(const std::string& name) {
  return cast<const Planner>(state_->object(Planner::kKind, name));
}
Result<const Schedule*> PluginRegistry::schedule(const std::string& name) {
  return cast<const Schedule>(state_->object(Schedule::kKind, name));
}
Result<CommBackend*> PluginRegistry::comm(const std::string& name) {
  return cast<CommBackend>(state_->object(CommBackend::kKind, name));
}
Result<DeviceBackend*> PluginRegistry::device(const std::string& name) {
  return cast<DeviceBackend>(state_->object(DeviceBackend::kKind, name));
}
Result<const Model*> PluginRegistry::model(const std::string& name) {
  return cast<const Model>(state_->object(Model::kKind, name));
}
Result<const Scheduler*> PluginRegistry::scheduler(const std::string& name) {
  return cast<const Scheduler>(state_->object(Scheduler::kKind, name));
}

Status PluginRegistry::State::add_ops() const {
  for (const auto& plugin : plugins) {
    if (plugin.info.kind != OpExtension::kKind || plugin.object == nullptr) continue;
    for (auto& definition : static_cast<const OpExtension*>(plugin.object)->definitions()) {
      Status status = OpTable::instance().add(std::move(definition));
      if (!status.is_ok())
        return status.with_context(fmt::format("while adding the ops of {} ({})", plugin.info.name, plugin.info.path));
    }
  }
  return Status::ok();
}

Result<std::vector<const OpExtension*>> PluginRegistry::ops() {
  std::lock_guard lock(state_->mutex);
  state_->search();
  if (!state_->ops_added) state_->ops_added = state_->add_ops();
  if (!state_->ops_added->is_ok()) return *state_->ops_added;
  std::vector<const OpExtension*> extensions;
  for (const auto& plugin : state_->plugins) {
    if (plugin.info.kind == OpExtension::kKind && plugin.object != nullptr) {
      extensions.push_back(static_cast<const OpExtension*>(plugin.object));
    }
  }
  return extensions;
}

}  // namespace altiplano
