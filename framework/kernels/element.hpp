#pragma once
// One element of a tensor in memory as a double, and back: for comparing, converting and checking, where clearness counts more than speed.
// bfloat16 is rounded to nearest even; i64 beyond 2^53 and f32 lose digits as their conversion from and to double does. Addresses need
// no alignment; nothing is checked: `at` has size_of(dtype) bytes.
#include <cstddef>
#include <cstring>

#include "framework/graph/dtype.hpp"
#include "framework/kernels/bfloat16.hpp"

namespace altiplano {

inline double load_element(DType dtype, const void* at) {
  const auto as = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::kF64:
      return as(double{});
    case DType::kF32:
      return static_cast<double>(as(float{}));
    case DType::kBF16:
      return static_cast<double>(float_from_bfloat16(as(BFloat16{})));
    case DType::kI32:
      return as(int32_t{});
    case DType::kI64:
      return static_cast<double>(as(int64_t{}));
  }
  return 0;
}

inline void store_element(DType dtype, double value, void* at) {
  const auto put = [at](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (dtype) {
    case DType::kF64:
      return put(value);
    case DType::kF32:
      return put(static_cast<float>(value));
    case DType::kBF16:
      return put(bfloat16_from_float(static_cast<float>(value)));
    case DType::kI32:
      return put(static_cast<int32_t>(value));
    case DType::kI64:
      return put(static_cast<int64_t>(value));
  }
}

}  // namespace altiplano
