#include "framework/plugin/describe.hpp"

#include <algorithm>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

std::vector<PluginInfo> usable_by_name(const std::vector<PluginInfo>& infos) {
  std::vector<PluginInfo> usable;
  std::copy_if(infos.begin(), infos.end(), std::back_inserter(usable),
               [](const PluginInfo& info) { return info.refusal.empty(); });
  std::sort(usable.begin(), usable.end(), [](const PluginInfo& a, const PluginInfo& b) { return a.name < b.name; });
  return usable;
}

std::string kind_text(const PluginInfo& info) {
  const char* kind = plugin_kind_name(info.kind);
  return kind == nullptr ? "unknown" : kind;
}

std::string short_name(const PluginInfo& info) {
  return info.name.substr(info.name.find('/') + 1);
}

/// "0xe (needs_host_progress, deterministic, between_processes)"; the names of bits that the kind knows.
std::string capabilities_text(const PluginInfo& info) {
  constexpr std::pair<uint64_t, const char*> kCommBits[] = {
      {kCommStreamOrdered, "stream_ordered"}, {kCommNeedsHostProgress, "needs_host_progress"},
      {kCommDeterministic, "deterministic"},  {kCommBetweenProcesses, "between_processes"},
      {kCommBetweenHosts, "between_hosts"},   {kCommWithinProcess, "within_process"},
      {kCommNoticesDeath, "notices_death"}};
  std::vector<std::string> names;
  for (const auto& [bit, name] : kCommBits)
    if (info.kind == CommBackend::kKind && (info.capabilities & bit) != 0) names.emplace_back(name);
  return fmt::format("{:#x}{}", info.capabilities, names.empty() ? "" : " (" + join(names, ", ") + ")");
}

std::string table_line(const std::string& name, const std::string& version, const std::string& kind,
                       const std::string& path, const size_t (&widths)[3]) {
  return fmt::format("{:<{}}  {:<{}}  {:<{}}  {}\n", name, widths[0], version, widths[1], kind, widths[2], path);
}

}  // namespace

std::string plugin_list_text(const std::vector<PluginInfo>& infos) {
  auto usable = usable_by_name(infos);
  size_t widths[3] = {4, 7, 4};
  for (const auto& info : usable) {
    widths[0] = std::max(widths[0], info.name.size());
    widths[1] = std::max(widths[1], info.version.size());
    widths[2] = std::max(widths[2], kind_text(info).size());
  }
  std::string text = table_line("name", "version", "kind", "path", widths);
  for (const auto& info : usable) text += table_line(info.name, info.version, kind_text(info), info.path, widths);
  bool is_first = true;
  for (const auto& info : infos) {
    if (info.refusal.empty()) continue;
    if (is_first) text += "\nrefused:\n";
    is_first = false;
    text += fmt::format("  {}\n", info.refusal);
  }
  return text;
}

std::string plugin_info_text(const PluginInfo& info) {
  std::string text;
  auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}: {}\n", key, value);
  };
  add("name", info.name);
  if (info.kind != 0) add("kind", kind_text(info));
  add("version", info.version);
  add("build", info.build_id);
  add("help", info.help);
  if (info.kind != 0) add("capabilities", capabilities_text(info));
  add("path", info.path);
  add("refused", info.refusal);
  return text;
}

Result<PluginInfo> find_plugin_info(const std::vector<PluginInfo>& infos, const std::string& name) {
  std::vector<PluginInfo> matches;
  std::vector<std::string> names;
  for (const auto& info : infos) {
    if (info.name.empty()) continue;
    // A usable plugin hides refused ones of its name: they come later on the search path.
    bool is_hidden = std::find(names.begin(), names.end(), info.name) != names.end();
    if (!is_hidden) names.push_back(info.name);
    if (!is_hidden && (info.name == name || short_name(info) == name)) matches.push_back(info);
  }
  if (matches.size() == 1) return matches[0];
  if (matches.empty()) {
    auto suggestion = did_you_mean(name, names);
    return invalid_argument("no plugin {}{}; there is: {}", name,
                            suggestion ? fmt::format(", did you mean {}?", *suggestion) : "",
                            names.empty() ? "none" : join(names, ", "));
  }
  std::vector<std::string> candidates;
  for (const auto& info : matches) candidates.push_back(info.name);
  return invalid_argument("plugin {} is ambiguous: {}", name, join(candidates, ", "));
}

}  // namespace altiplano
