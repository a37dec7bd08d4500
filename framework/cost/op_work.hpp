#pragma once
// What one op computes and moves, counted from the types of its operands.
#include <span>
#include <string_view>

#include "framework/base/units.hpp"
#include "framework/graph/op_definition.hpp"

namespace altiplano {

struct OpWork {
  std::string_view kind;  ///< of a string that outlives it
  Flops flops;
  Bytes bytes;  ///< read and written
  DType dtype = DType::kF32;
  /// Of a matrix product, by its rule an op of two operands that sums over what only they have: of its rows, columns
  /// and inner size the smallest. 0: no product.
  int64_t smallest_dim = 0;
  int64_t alignment = 0;   ///< of a matrix product: the greatest power of two that divides rows, columns and inner size
  Bytes inner_bytes = {};  ///< of what stands between the products an op is made of (OpDefinition::inner_elements)
};

/// Of operands as they lie on one device. An op whose definition counts no FLOPs does one per element it writes; what
/// it computes in is the type of its first input, else of its output. `kind` outlives the result.
OpWork op_work(const std::string& kind, const Attributes& attributes, std::span<const ValueType> inputs,
               std::span<const ValueType> outputs);

}  // namespace altiplano
