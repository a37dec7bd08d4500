#pragma once
// api/collectives/: collectives over point-to-point, written once for backends that have none.
//
// reduce_in_order: the one reduction. Element i of the result is ((x0[i] op x1[i]) op x2[i]) ... in the order of
// `sources`, bf16 is summed in f32 and rounded once (to nearest even) at the end, integers wrap around, a NaN makes a
// maximum NaN. No other order is ever used, so that the bits depend on the group's order and the values only, not on
// sizes, chunks or timing.
#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/cluster/collective.hpp"
#include "framework/graph/dtype.hpp"

namespace altiplano {

struct Reduction {
  std::span<std::byte* const> out;  ///< all get the result; any may be one of the sources
  int64_t out_offset = 0;           ///< bytes into each of them
  std::span<const std::byte* const> sources;
  int64_t source_offset = 0;  ///< bytes into each of them
  int64_t count = 0;          ///< elements
  DType dtype = DType::kF32;
  ReduceKind kind = ReduceKind::kSum;
};
void reduce_in_order(const Reduction& reduction);

/// out[count] from sources[k][count]; out may be one of the sources.
void reduce_in_order(void* out, std::span<const std::byte* const> sources, int64_t count, DType dtype, ReduceKind kind);

}  // namespace altiplano
