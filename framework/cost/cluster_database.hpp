#pragma once
// The part of the profile database that holds cluster models measured by `altiplano profile --cluster`, by machine and
// threads of a rank, in ${XDG_CACHE_HOME:-~/.cache}/altiplano/clusters.h5. `cluster: this-machine` is the one of the
// machine it runs on. Kept as profile_file.hpp says.
#include <map>
#include <optional>
#include <string>

#include "framework/cluster/cluster.hpp"

namespace altiplano {

struct MeasuredCluster {
  std::string machine;  ///< what it was measured on: processor, device, threads of a rank
  std::string date;     ///< "2026-12-01"
  double spread = 0;    ///< of the times of a step, between the quartiles, of the median
  Cluster cluster;
};

class ClusterDatabase {
 public:
  /// Nothing when there is no such file. `path` empty: a database that stays empty.
  static ClusterDatabase read(const std::string& path);
  /// Empty, or why what lay there could not be read.
  const std::string& notice() const { return notice_; }
  const MeasuredCluster* find(const std::string& machine) const;
  /// Adds or replaces that machine's, to what the file holds by then. Fails where nothing can be written.
  Status store(const MeasuredCluster& measured);

 private:
  std::string path_, notice_;
  std::map<std::string, MeasuredCluster> known_;
};

}  // namespace altiplano
