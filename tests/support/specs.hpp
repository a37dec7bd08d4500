#pragma once
// All sharding specs of a tensor on a mesh: each active axis splits a dim, is partial, or neither; axes on one dim in
// every order.
#include <algorithm>
#include <vector>

#include "framework/sharding/spec.hpp"

namespace altiplano::test {

inline std::vector<ShardingSpec> all_specs(size_t rank, const MeshShape& mesh, bool with_partial = true,
                                           PartialKind kind = PartialKind::kSum) {
  std::vector<ShardingSpec> specs = {ShardingSpec::replicated(rank)};
  for (const auto& [axis, degree] : mesh.axes) {
    if (degree == 1) continue;
    std::vector<ShardingSpec> before = specs;
    for (const ShardingSpec& spec : before) {
      for (size_t d = 0; d < rank; ++d) {
        for (size_t at = 0; at <= spec.dims[d].size(); ++at) {
          ShardingSpec split = spec;
          split.dims[d].insert(split.dims[d].begin() + static_cast<std::ptrdiff_t>(at), axis);
          specs.push_back(std::move(split));
        }
      }
      if (!with_partial) continue;
      ShardingSpec partial = spec;
      partial.partial.insert(axis);
      partial.partial_kind = kind;
      specs.push_back(std::move(partial));
    }
  }
  return specs;
}

/// The meshes sharding tests run on.
inline std::vector<MeshShape> test_meshes() {
  return {{{{Axis::kData, 2}}}, {{{Axis::kTensor, 3}}}, {{{Axis::kData, 4}}}, {{{Axis::kData, 2}, {Axis::kTensor, 2}}}};
}

}  // namespace altiplano::test
