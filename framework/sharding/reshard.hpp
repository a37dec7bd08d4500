#pragma once
// Reshard path: the cheapest sequence of single steps that turns one spec of a tensor into another on the same mesh,
// found by Dijkstra's algorithm over specs with bytes on the wire as cost. All ranks find the same path (ties by a
// fixed order).
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/sharding/spec.hpp"

namespace altiplano {

enum class ReshardKind : uint8_t {
  kSlice,          ///< axis starts to split `dim`: local
  kAllGather,      ///< the minor axis of `dim` stops to split it
  kAllReduce,      ///< partial over `axes` becomes whole
  kReduceScatter,  ///< partial over `axis` becomes split of `dim` by `axis` (minor)
  kAllToAll,       ///< the minor axis of `from_dim` moves to `dim` (minor)
  kToPartial,  ///< replicated along `axes` becomes partial: a sum is kept on coordinate 0, zero elsewhere; a maximum
               ///< stays: local
};
const char* to_string(ReshardKind kind);

struct ReshardStep {
  ReshardKind kind;
  Axis axis = Axis::kData;  ///< of slice, all_gather, reduce_scatter, all_to_all
  AxisSet axes;             ///< of all_reduce and to_partial; {axis} otherwise
  int dim = -1, from_dim = -1;
  ShardingSpec before, after;
  double wire_elements = 0;  ///< sent per rank
  std::string to_string() const;
};

/// Empty when the specs are equal. A path exists between any two specs of one partial kind; a change of kind (sum to
/// max) is refused.
Result<std::vector<ReshardStep>> reshard_path(const ShardingSpec& from, const ShardingSpec& to, const Shape& shape,
                                              const MeshShape& mesh);
/// Elements each rank sends along the path; 0 for local paths.
double reshard_wire_elements(const std::vector<ReshardStep>& path);

}  // namespace altiplano
