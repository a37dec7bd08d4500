#include "framework/runtime/comm_choice.hpp"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"

namespace altiplano {
namespace {

/// One rank talks to nobody else, so any way to connect serves it.
bool connects(const PluginInfo& info, int world_size) {
  const uint64_t needed = world_size == 1 ? kCommWithinProcess | kCommBetweenProcesses | kCommBetweenHosts
                                          : uint64_t{kCommBetweenProcesses};
  return (info.capabilities & needed) != 0;
}

std::vector<PluginInfo> backends_that_connect(const std::vector<PluginInfo>& plugins, int world_size) {
  std::vector<PluginInfo> able;
  for (const PluginInfo& info : plugins)
    if (info.kind == CommBackend::kKind && info.refusal.empty() && connects(info, world_size)) able.push_back(info);
  return able;
}

std::string names_of(const std::vector<PluginInfo>& infos) {
  std::vector<std::string> names;
  for (const PluginInfo& info : infos) names.push_back(info.name.substr(info.name.find('/') + 1));
  std::sort(names.begin(), names.end());
  return names.empty() ? "none" : join(names, ", ");
}

}  // namespace

Result<std::string> choose_comm_backend(const std::vector<PluginInfo>& plugins, const std::string& home,
                                        const std::string& wanted, const std::string& where, int world_size) {
  std::vector<PluginInfo> able = backends_that_connect(plugins, world_size);
  if (wanted != "auto") {
    const std::string name = wanted.find('/') == std::string::npos ? "comm/" + wanted : wanted;
    const auto named = std::find_if(plugins.begin(), plugins.end(),
                                    [&](const PluginInfo& info) { return info.name == name && info.refusal.empty(); });
    if (named == plugins.end() || connects(*named, world_size)) return name;  // an unknown one: the registry says it
    return invalid_argument("{}: {} does not connect processes, and the job has {}; backends that do: {}", where, name,
                            counted(world_size, "rank"), names_of(able));
  }
  if (able.empty())
    return invalid_argument("{}: no backend connects {}; there is: {}", where, counted(world_size, "rank"),
                            names_of(backends_that_connect(plugins, 1)));
  const auto order = [&](const PluginInfo& info) {
    const bool is_exact = (info.capabilities & kCommDeterministic) != 0;
    const bool is_of_threads = (info.capabilities & kCommWithinProcess) != 0;
    const bool is_at_home = std::filesystem::path(info.path).parent_path() == home;
    return std::tuple(!is_exact, world_size == 1 && !is_of_threads, !is_at_home, info.name);
  };
  return std::min_element(able.begin(), able.end(),
                          [&](const PluginInfo& a, const PluginInfo& b) { return order(a) < order(b); })
      ->name;
}

Result<std::string> choose_comm_backend(const Options& options, int world_size) {
  PluginRegistry& registry = PluginRegistry::instance();
  const auto& plugins = registry.list();
  return choose_comm_backend(plugins, registry.search_path().back(), options.get_string("comm.backend"),
                             options.where("comm.backend"), world_size);
}

}  // namespace altiplano
