#pragma once
// ShardingSpec: per tensor dim the mesh axes that split it (major first), plus the axes over which each device holds
// only a partial result. One text form that prints and parses: `[{data}, -, {tensor}]`, `[{data}, -] sum{tensor}`, `[]
// max{tensor}`.
//
// Split of extent n over degree p: blocks of ceil(n/p); the last blocks may be shorter or empty. A dim split by {a, b}
// is split by a first, each block then by b. An axis appears at most once in a spec.
#include <string>
#include <vector>

#include "framework/base/inline_vector.hpp"
#include "framework/base/status.hpp"
#include "framework/graph/dtype.hpp"
#include "framework/sharding/axis.hpp"
#include "framework/sharding/box.hpp"

namespace altiplano {

enum class PartialKind : uint8_t { kSum, kMax };

struct ShardingSpec {
  static constexpr size_t kUsualDims = 6;  ///< tensors of more dims cost an allocation
  InlineVector<AxisList, kUsualDims> dims;
  AxisSet partial;  ///< axes over which the value is a partial result
  PartialKind partial_kind = PartialKind::kSum;

  static ShardingSpec replicated(size_t rank) {
    return {InlineVector<AxisList, kUsualDims>(rank), {}, PartialKind::kSum};
  }
  AxisSet split_axes() const;
  bool is_replicated() const { return split_axes().is_empty() && partial.is_empty(); }
  /// The same dims, nothing partial.
  ShardingSpec resolved() const;
  std::string to_string() const;
  static Result<ShardingSpec> parse(std::string_view text);
  bool operator==(const ShardingSpec& other) const;
  bool operator<(const ShardingSpec& other) const;  ///< for ordered containers
};

/// Removes axes of degree 1 (they split nothing), so that equal layouts have equal specs.
ShardingSpec normalized(ShardingSpec spec, const MeshShape& mesh);
/// Refuses: wrong number of dims, an axis twice.
Status check_spec(const ShardingSpec& spec, const Shape& shape);
/// The box of the global tensor that the device at `index` of the mesh holds. Exact (clipped): no padding.
Box local_box(const ShardingSpec& spec, const Shape& shape, const MeshShape& mesh, int index);
/// Largest local extents over all devices: what wire buffers pad to.
Shape padded_extents(const ShardingSpec& spec, const Shape& shape, const MeshShape& mesh);

}  // namespace altiplano
