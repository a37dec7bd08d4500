#pragma once
// Folders of new plugins, from the templates in configs/plugin_templates/<kind>. In names and texts, NAME and @name@
// become the plugin's name, @Name@ its name as a type and @NAME@ as a variable.
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

/// Makes `folder` (which must not be there, or be empty) with a plugin of this kind and name: its files, sorted.
/// Refused: unknown kinds, names that are no lower-case identifier or that a plugin on the search path has, a folder
/// that holds something.
Result<std::vector<std::string>> write_new_plugin(const std::string& kind, const std::string& name,
                                                  const std::string& folder);

}  // namespace altiplano
