#pragma once
// Where cluster files are found at run time. A cluster is named by a path (it holds a '/' or ends in .yaml) or by the
// name of a preset: a file <name>.yaml in one of the preset folders.
#include <string>
#include <vector>

#include "framework/cluster/cluster.hpp"

namespace altiplano {

/// Folders in the order they are searched for configs/<name>: $ALTIPLANO_CONFIG_PATH/<name> (colon separated),
/// <prefix>/share/altiplano/configs/<name> of the running executable <prefix>/bin/…, and configs/<name> of the source
/// tree it was built from.
std::vector<std::string> config_folders(const std::string& name);
std::vector<std::string> cluster_preset_folders();  ///< of "clusters"
/// Names of all presets, sorted, each once (the first folder wins).
std::vector<std::string> cluster_preset_names();
/// Reads and checks it. Unknown: a message with did-you-mean, the names there are, and the folders searched.
Result<Cluster> load_cluster(const std::string& name_or_path);

}  // namespace altiplano
