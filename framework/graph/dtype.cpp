#include "framework/graph/dtype.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace altiplano {

int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
      return 2;
  }
  return 0;
}

const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "f64";
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
  }
  return "?";
}

std::optional<DType> dtype_from_string(std::string_view text) {
  for (DType d : {DType::kF64, DType::kF32, DType::kBF16, DType::kI32, DType::kI64})
    if (text == to_string(d)) return d;
  if (text == "fp32") return DType::kF32;
  if (text == "fp64") return DType::kF64;
  return std::nullopt;
}

int64_t num_elements(const Shape& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

bool is_too_large(const Shape& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) {
    if (extent > 0 && n > kMostElements / extent) return true;
    n *= extent;
  }
  return false;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

}  // namespace altiplano
