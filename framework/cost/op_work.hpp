#pragma once
// What one op computes and moves, counted from the types of its operands.
#include <span>

#include "framework/base/units.hpp"
#include "framework/graph/op_definition.hpp"

namespace altiplano {

struct OpWork {
  Flops flops;
  Bytes bytes;  ///< read and written
  DType dtype = DType::kF32;
};

/// Of operands as they lie on one device. An op whose definition counts no FLOPs does one per element it writes; what
/// it computes in is the type of its first input, else of its output.
OpWork op_work(const std::string& kind, const Attributes& attributes, std::span<const ValueType> inputs,
               std::span<const ValueType> outputs);

}  // namespace altiplano
