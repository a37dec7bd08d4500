#pragma once
// The element type of a file for each DType of a graph.
#include "framework/graph/dtype.hpp"
#include "framework/storage/hdf5_file.hpp"

namespace altiplano {

inline ElementType element_type_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return ElementType::kF64;
    case DType::kF32:
      return ElementType::kF32;
    case DType::kBF16:
      return ElementType::kBF16;
    case DType::kI32:
      return ElementType::kI32;
    case DType::kI64:
      return ElementType::kI64;
  }
  return ElementType::kF32;
}

}  // namespace altiplano
