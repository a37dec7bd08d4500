#include "framework/api/collectives/reduce.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace altiplano {
namespace {

constexpr int64_t kBlock = 1024;  // elements whose running result stays in the first-level cache

struct BF16 {
  uint16_t bits;
};

float widen(BF16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}
template <typename T>
T widen(T x) {
  return x;
}

void narrow(float x, BF16& out) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) {
    out.bits = static_cast<uint16_t>((bits >> 16) | 0x40u);
    return;
  }
  out.bits = static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
template <typename T>
void narrow(T x, T& out) {
  out = x;
}

template <typename T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}
template <typename T>
T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return (a > b || std::isnan(a)) ? a : b;
  else
    return a > b ? a : b;
}

template <typename Stored, typename Running, ReduceKind kKind>
void reduce_typed(void* out, std::span<const void* const> sources, int64_t count) {
  std::array<Running, kBlock> running;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    const auto* first = static_cast<const Stored*>(sources[0]) + begin;
    for (int64_t i = 0; i < n; ++i) running[static_cast<size_t>(i)] = widen(first[i]);
    for (size_t s = 1; s < sources.size(); ++s) {
      const auto* next = static_cast<const Stored*>(sources[s]) + begin;
      for (int64_t i = 0; i < n; ++i) {
        Running& r = running[static_cast<size_t>(i)];
        r = kKind == ReduceKind::kSum ? sum<Running>(r, widen(next[i])) : maximum<Running>(r, widen(next[i]));
      }
    }
    auto* to = static_cast<Stored*>(out) + begin;
    for (int64_t i = 0; i < n; ++i) narrow(running[static_cast<size_t>(i)], to[i]);
  }
}

template <typename Stored, typename Running>
void reduce_as(void* out, std::span<const void* const> sources, int64_t count, ReduceKind kind) {
  if (kind == ReduceKind::kSum)
    reduce_typed<Stored, Running, ReduceKind::kSum>(out, sources, count);
  else
    reduce_typed<Stored, Running, ReduceKind::kMax>(out, sources, count);
}

}  // namespace

void reduce_in_order(void* out, std::span<const void* const> sources, int64_t count, DType dtype, ReduceKind kind) {
  switch (dtype) {
    case DType::kF64:
      return reduce_as<double, double>(out, sources, count, kind);
    case DType::kF32:
      return reduce_as<float, float>(out, sources, count, kind);
    case DType::kBF16:
      return reduce_as<BF16, float>(out, sources, count, kind);
    case DType::kI32:
      return reduce_as<int32_t, int32_t>(out, sources, count, kind);
    case DType::kI64:
      return reduce_as<int64_t, int64_t>(out, sources, count, kind);
  }
}

}  // namespace altiplano
