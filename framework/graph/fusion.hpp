#pragma once
// fusion: ops that only pass their result on to the next become one, where the device has a kernel for the one. The
// graph means the same: names of parameters and inputs, and every value that is left, stay.
//
//   add_bias, gelu                                   -> bias_gelu
//   add_bias, maybe dropout, add                     -> residual_add
//   three slices of qkv, three reshapes, attention   -> packed_attention
#include <set>
#include <string>

#include "framework/graph/training_graph.hpp"

namespace altiplano {

/// `kinds`: fused kinds that may be used (of DeviceBackend::fused_kinds()). Before autodiff: their gradients are fused
/// too.
Result<ModelGraph> fuse(const ModelGraph& model, const std::set<std::string>& kinds);

}  // namespace altiplano
