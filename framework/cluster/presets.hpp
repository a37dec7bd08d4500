#pragma once
// Where cluster files are found at run time. A cluster is named by a path (it holds a '/' or ends in .yaml) or by the
// name of a preset: a file <name>.yaml in one of the preset folders.
#include <string>
#include <vector>

#include "framework/cluster/cluster.hpp"

namespace altiplano {

/// Folders in the order they are searched: $ALTIPLANO_CONFIG_PATH/clusters (colon separated),
/// <prefix>/share/altiplano/configs/clusters of the running executable <prefix>/bin/…, and configs/clusters of the
/// source tree it was built from.
std::vector<std::string> cluster_preset_folders();
/// Names of all presets, sorted, each once (the first folder wins).
std::vector<std::string> cluster_preset_names();
/// Reads and checks it. Unknown: a message with did-you-mean, the names there are, and the folders searched.
Result<Cluster> load_cluster(const std::string& name_or_path);

}  // namespace altiplano
