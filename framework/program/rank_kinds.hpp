#pragma once
// Which ranks have alike programs: the same instructions on buffers of the same sizes, only with other peers and other
// places of the tensors. One of each kind shows what all do.
#include "framework/program/lowering_context.hpp"

namespace altiplano {

/// Places in the stage's mesh by kind, each kind ascending, kinds by their first place. Alike are places that hold
/// pieces of the same extents of everything on the stage, send and receive such pieces of what crosses stages, are
/// first (coordinate 0) along the same axes, since the first replica counts what all have, and meet groups that are
/// alike.
std::vector<std::vector<int>> places_by_kind(const LoweringContext& context, StageId stage);

}  // namespace altiplano
