#include "framework/runtime/comm_choice.hpp"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"

namespace altiplano {
namespace {

/// One rank talks to nobody else, so any way to connect serves it.
uint64_t needed_for(RanksToConnect ranks) {
  if (ranks.count == 1) return kCommWithinProcess | kCommBetweenProcesses | kCommBetweenHosts;
  return ranks.hosts == 1 ? kCommBetweenProcesses : kCommBetweenHosts;
}

std::vector<PluginInfo> backends_with(const std::vector<PluginInfo>& plugins, uint64_t capabilities) {
  std::vector<PluginInfo> able;
  for (const PluginInfo& info : plugins)
    if (info.kind == CommBackend::kKind && info.refusal.empty() && (info.capabilities & capabilities) != 0)
      able.push_back(info);
  return able;
}

std::string in_words(RanksToConnect ranks) {
  const std::string text = counted(ranks.count, "rank");
  return ranks.hosts == 1 ? text : fmt::format("{} on {}", text, counted(ranks.hosts, "host"));
}

std::string names_of(const std::vector<PluginInfo>& infos) {
  std::vector<std::string> names;
  for (const PluginInfo& info : infos) names.push_back(info.name.substr(info.name.find('/') + 1));
  std::sort(names.begin(), names.end());
  return names.empty() ? "none" : join(names, ", ");
}

}  // namespace

Result<std::string> choose_comm_backend(const std::vector<PluginInfo>& plugins, const std::string& home,
                                        const std::string& wanted, const std::string& where, RanksToConnect ranks) {
  const uint64_t needed = needed_for(ranks);
  const std::vector<PluginInfo> able = backends_with(plugins, needed);
  if (wanted != "auto") {
    const std::string name = wanted.find('/') == std::string::npos ? "comm/" + wanted : wanted;
    const auto named = std::find_if(plugins.begin(), plugins.end(),
                                    [&](const PluginInfo& info) { return info.name == name && info.refusal.empty(); });
    if (named == plugins.end()) return name;  // an unknown one: the registry says it
    if ((named->capabilities & (needed | kCommBetweenHosts)) != 0) return name;
    return invalid_argument("{}: {} does not connect {}, and the job has {}; backends that do: {}", where, name,
                            ranks.hosts == 1 ? "processes" : "hosts", in_words(ranks), names_of(able));
  }
  if (able.empty())
    return invalid_argument("{}: no backend connects {}; there is: {}{}", where, in_words(ranks),
                            names_of(backends_with(plugins, ~uint64_t{0})),
                            ranks.hosts == 1 ? "" : "; comm/ucx is built where UCX is (libucx-dev), comm/mpi where MPI is (libopenmpi-dev)");
  const auto order = [&](const PluginInfo& info) {
    const bool is_exact = (info.capabilities & kCommDeterministic) != 0;
    const bool is_of_threads = (info.capabilities & kCommWithinProcess) != 0;
    const bool is_at_home = std::filesystem::path(info.path).parent_path() == home;
    const bool notices = (info.capabilities & kCommNoticesDeath) != 0;
    const bool is_of_hosts = (info.capabilities & kCommBetweenHosts) != 0;
    return std::tuple(!is_exact, ranks.count == 1 && !is_of_threads, ranks.hosts == 1 && is_of_hosts, !notices,
                      !is_at_home, info.name);
  };
  return std::min_element(able.begin(), able.end(),
                          [&](const PluginInfo& a, const PluginInfo& b) { return order(a) < order(b); })
      ->name;
}

Result<std::string> choose_comm_backend(const Options& options, RanksToConnect ranks) {
  PluginRegistry& registry = PluginRegistry::instance();
  const auto& plugins = registry.list();
  return choose_comm_backend(plugins, registry.search_path().back(), options.get_string("comm.backend"),
                             options.where("comm.backend"), ranks);
}

}  // namespace altiplano
