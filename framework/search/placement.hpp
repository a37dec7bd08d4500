#pragma once
// Which rank takes which slot of a plan: the part of a plan that depends on where an allocation's ranks happen to be.
// The aim is few hop-bytes: bytes of a step times the links between hosts and switches they cross (Bhatelé, Kalé,
// "Benefits of topology aware mapping for mesh interconnects", Parallel Processing Letters 2008, for the measure).
#include <cstdint>
#include <vector>

#include "framework/cluster/rank_places.hpp"
#include "framework/plan/plan.hpp"

namespace altiplano {

/// Slots that exchange in a step. Where they lie in k groups of a level, (k - 1) * bytes cross between these groups:
/// what a collective must send at least, and does in two levels.
struct SlotExchange {
  std::vector<int> slots;  ///< ascending
  double bytes = 0;
};

struct PlacementScore {
  std::vector<double> bytes;  ///< per step, by the level at which sender and receiver meet; [0] is 0: within hosts
  double hop_bytes = 0;       ///< level l is 2 l links away
  /// Bytes per step that cross between hosts (level 0), or between the groups of an outer level.
  double between(int level) const;
};

PlacementScore score_placement(const RankPlaces& places, const std::vector<SlotExchange>& exchanges,
                               const Binding& binding);

struct Placement {
  Binding binding;
  PlacementScore score, in_order;  ///< of the binding; of slots as ranks are numbered
  bool is_proved = false;          ///< nothing is better
};

/// As many slots as ranks. Tries slots in the order of the network's tree, exchanges pairs of slots while that helps,
/// and looks through what remains (branch and bound) as far as `most_looks` go. Never worse than `in_order`, which
/// stands where nothing is better.
Placement find_placement(const RankPlaces& places, const std::vector<SlotExchange>& exchanges,
                         int64_t most_looks = 20'000);

}  // namespace altiplano
