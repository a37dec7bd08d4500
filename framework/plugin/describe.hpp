#pragma once
// Text about plugins for people: the table of `altiplano plugins list` and the page of `plugins info NAME`. Pure
// functions over infos.
#include <string>
#include <vector>

#include "framework/plugin/registry.hpp"

namespace altiplano {

/// One line per usable plugin in order of names (name, version, kind, path), then the refused files with their reasons.
std::string plugin_list_text(const std::vector<PluginInfo>& infos);

/// Everything known of one plugin, one "key: value" per line; of a refused one the reason too.
std::string plugin_info_text(const PluginInfo& info);

/// By full name or by a short name that only one kind has. Refusals name the candidates.
Result<PluginInfo> find_plugin_info(const std::vector<PluginInfo>& infos, const std::string& name);

}  // namespace altiplano
