#pragma once
// Which values live at once on a stage: what memory rows are made of. From the order of ops alone; how large a value is
// depends on what is chosen for it.
#include <vector>

#include "framework/graph/training_graph.hpp"

namespace altiplano {

struct LiveValue {
  ValueId value;
  bool is_stashed = false;  ///< backward reads a forward value: kept once per microbatch in flight
  auto operator<=>(const LiveValue&) const = default;
};
using LiveSet = std::vector<LiveValue>;  ///< ascending, no parameters

/// The maximal sets of values that live together on the stage that has `layers` (by LayerId), all stashed ones in each:
/// no set is part of another once equal layers (`layer_class`) are identified. At least one, at most `most_sets`, those
/// of the most elements.
std::vector<LiveSet> live_sets(const TrainingGraph& training, const std::vector<bool>& layers,
                               const std::vector<int>& layer_class, size_t most_sets = 6);

}  // namespace altiplano
