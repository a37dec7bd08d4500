#pragma once
// Prices of shardings on a cluster: what the estimate of a Program will say of the same ops and collectives.
#include "framework/cluster/cluster.hpp"
#include "framework/search/sharding_problem.hpp"

namespace altiplano {

/// `devices`: per mesh, positions in the cluster by position in the mesh, of one of the stages that have it. Seconds.
/// `cluster` and `meshes` outlive the prices.
ShardingPrices cluster_prices(const Cluster& cluster, const std::vector<MeshShape>& meshes,
                              const std::vector<std::vector<int>>& devices);

}  // namespace altiplano
