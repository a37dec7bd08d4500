#pragma once
// Hosts of one kind joined by a network: the cluster of a job whose ranks are on several.
#include <string>

#include "framework/cluster/cluster.hpp"
#include "framework/cluster/rank_places.hpp"

namespace altiplano {

/// What a message between two hosts costs. As it stands: ten gigabits a second, the least that clusters have.
struct NetworkFigures {
  double latency = 30e-6;     ///< seconds
  double bandwidth = 1.1e9;   ///< bytes per second and direction, of one host
  std::string measured = {};  ///< "2026-12-01 over comm/ucx"; empty: it was not

  std::string to_yaml() const;
  /// Strict: "file:line:column: key: …".
  static Result<NetworkFigures> from_yaml(const std::string& text, const std::string& file_name);
};

/// The devices of `host`, whose levels are within it, and above them a level "network". Hosts of unlike numbers of
/// ranks are taken as if each rank had one for itself, for a Cluster's groups are alike.
Cluster join_hosts(const Cluster& host, const RankPlaces& places, const NetworkFigures& network);

/// Ranks of the fullest host; all where they share one.
int most_ranks_of_a_host(const RankPlaces& places, int num_ranks);

}  // namespace altiplano
