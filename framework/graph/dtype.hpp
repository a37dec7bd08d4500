#pragma once
// graph/ (L1): the model with single-device meaning (design invariant 1): nothing here knows of ranks or meshes. May
// include base/ only.
//
// DType: element types. Shape: extents of a row-major tensor, outermost first; [] is a scalar.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace altiplano {

enum class DType : uint8_t { kF64, kF32, kBF16, kI32, kI64 };

int64_t size_of(DType dtype);  ///< bytes per element
const char* to_string(DType dtype);
std::optional<DType> dtype_from_string(std::string_view text);
inline bool is_floating(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kBF16;
}
/// The type statistics and accumulators of a computation in `dtype` are kept in: f64 for f64, else f32.
inline DType accumulate_dtype(DType dtype) {
  return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

using Shape = std::vector<int64_t>;
int64_t num_elements(const Shape& shape);
/// Largest number of elements of a tensor: bytes of thousands of them still fit into 64 bits.
constexpr int64_t kMostElements = int64_t{1} << 48;
/// Whether a shape has more than kMostElements; num_elements may then have overflowed.
bool is_too_large(const Shape& shape);
std::string to_string(const Shape& shape);  ///< "[24,128,48]"

}  // namespace altiplano
