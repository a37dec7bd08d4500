#pragma once
// kernels/ (L1): pointwise arithmetic as host/device functors, header only, shared by every device (so that tests of
// one device cover the arithmetic of the others). Besides base/ it knows element types only; nothing here allocates,
// throws or keeps state.
//
// bfloat16 as stored: the upper half of a float. Arithmetic is always done in float.
#include <bit>
#include <cstdint>

#ifdef __CUDACC__
#define ALTIPLANO_POINTWISE __host__ __device__ __forceinline__
#else
#define ALTIPLANO_POINTWISE __attribute__((always_inline)) inline
#endif

namespace altiplano {

struct BFloat16 {
  uint16_t bits;
};

ALTIPLANO_POINTWISE float float_from_bfloat16(BFloat16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

/// Round to nearest, ties to even; NaN stays NaN (quiet), overflow becomes infinity.
ALTIPLANO_POINTWISE BFloat16 bfloat16_from_float(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>(x != x ? (u >> 16) | 0x40u : rounded)};
}

// One spelling for every storage type: to_acc widens to the type sums are kept in, from_acc rounds back.
ALTIPLANO_POINTWISE float to_acc(float x) {
  return x;
}
ALTIPLANO_POINTWISE double to_acc(double x) {
  return x;
}
ALTIPLANO_POINTWISE float to_acc(BFloat16 x) {
  return float_from_bfloat16(x);
}
template <typename T>
ALTIPLANO_POINTWISE T from_acc(double x) {
  return static_cast<T>(x);
}
template <typename T>
ALTIPLANO_POINTWISE T from_acc(float x) {
  return static_cast<T>(x);
}
template <>
ALTIPLANO_POINTWISE BFloat16 from_acc<BFloat16>(float x) {
  return bfloat16_from_float(x);
}
template <>
ALTIPLANO_POINTWISE BFloat16 from_acc<BFloat16>(double x) {
  return bfloat16_from_float(static_cast<float>(x));
}

}  // namespace altiplano
