#pragma once
// cost/ (L2): what things cost on a cluster: pure functions over values, no state, no clock. May include base/, graph/,
// cluster/, sharding/.
//
// Collectives by alpha-beta per level (Hockney): a message of b bytes over a level costs latency + b / bandwidth. The
// algorithm is chosen by price, per message size, by the same function that prices it, so the planner and a
// communicator that asks agree.
//
// S is always the *whole* tensor: all_reduce and broadcast: the tensor; all_gather: the gathered result;
// reduce_scatter: the input of one rank; all_to_all: the send buffer of one rank; barrier: ignored. n ranks, L =
// ceil(log2 n), a = latency, B = bandwidth:
//
//   all_reduce      ring 2(n-1)a + 2(n-1)/n S/B        halving_doubling 2La + 2(p-1)/p S/B (+ 2S/B unless n is a power
//   p of two)
//                   tree 2La + 2S/B (pipelined double tree)
//   reduce_scatter  ring (n-1)a + (n-1)/n S/B          halving_doubling La + (n-1)/n S/B (n a power of two)
//   all_gather      as reduce_scatter
//   all_to_all      pairwise (n-1)a + (n-1)/n S/B
//   broadcast       tree L(a + S/B)                    ring La + (n-1)a + 2(n-1)/n S/B (scatter, then ring all_gather)
//   barrier         tree La (dissemination)
//   hierarchical    level by level: reduce_scatter inside, the collective of S/n_inside on every rail across,
//   all_gather inside
//
// Sources: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005;
// Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
// 2009. Reduction arithmetic is not priced.
//
// Where a level has curves (framework/cluster/curves.hpp): B is the curve's at S; a call whose ranks meet at that level
// alone, or such a phase of a hierarchical one, takes what was measured of its kind and number of ranks; of another
// number, the nearest measured one's time in proportion to what the algorithms above cost.
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/base/units.hpp"
#include "framework/cluster/cluster.hpp"
#include "framework/cluster/collective.hpp"

namespace altiplano {

enum class CollectiveAlgorithm : uint8_t { kNone, kRing, kHalvingDoubling, kTree, kPairwise, kHierarchical };
const char* to_string(CollectiveAlgorithm algorithm);

/// Where a group's ranks lie: one entry per level that separates some of them, innermost first. `fanout` members meet
/// at it, below it they are in different groups. Product of fanouts = ranks.
struct GroupLevel {
  int level = 0;  ///< index into Cluster::levels
  int fanout = 1;
  double latency = 0, bandwidth = 0, oversubscription = 1;
  std::shared_ptr<const LevelCurves> curves = nullptr;
};
struct GroupShape {
  int ranks = 1;
  std::vector<GroupLevel> levels;
  /// Every group of every level holds equally many members. When not, `levels` has one entry: the outermost level that
  /// connects them.
  bool is_uniform = true;
};

/// `devices`: distinct positions in the cluster's tree order, any order.
GroupShape group_shape(const Cluster& cluster, std::span<const int> devices);

struct CollectiveCost {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kNone;  ///< kNone: one rank, nothing to do
  Seconds time;
  double bytes_sent = 0;  ///< per rank (the largest)
};

/// The price of one algorithm by latencies and bandwidths; nothing when it does not serve this kind and shape
/// (hierarchical on one level, halving_doubling reduce_scatter of five ranks).
std::optional<CollectiveCost> algorithm_cost(CollectiveKind kind, CollectiveAlgorithm algorithm, Bytes bytes,
                                             const GroupShape& shape);
/// The cheapest of `allowed` (empty: all); among equals the first in the order of the enum. Its time is the measured
/// one where there is one and all are allowed.
CollectiveCost collective_cost(CollectiveKind kind, Bytes bytes, const GroupShape& shape,
                               std::span<const CollectiveAlgorithm> allowed = {});
CollectiveCost collective_cost(CollectiveKind kind, Bytes bytes, const Cluster& cluster, std::span<const int> devices);

/// What all ranks of the group send together under the algorithm that collective_cost takes, by the level of the
/// cluster (index into Cluster::levels) that connects sender and receiver. A ring follows the tree's order and leaves a
/// group once; halving and doubling meets the nearest first, with the largest parts; a tree's edges are as few
/// between groups as can be.
std::map<int, double> bytes_by_level(CollectiveKind kind, Bytes bytes, const GroupShape& shape);

/// One message between two devices; 0 for a == b.
Seconds transfer_cost(Bytes bytes, const Cluster& cluster, int a, int b);

}  // namespace altiplano
