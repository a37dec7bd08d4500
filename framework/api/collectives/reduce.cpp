#include "framework/api/collectives/reduce.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "framework/base/clones.hpp"

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

// Choices without branches, so that loops become vectors.

template <typename T, typename Running>
T narrow(Running x) {
  return x;
}
template <>
BF16 narrow(float x) {
  const auto bits = std::bit_cast<uint32_t>(x), quiet = (bits >> 16) | 0x40u,
             rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>(std::isnan(x) ? quiet : rounded)};
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
    return (static_cast<int>(a > b) | static_cast<int>(std::isnan(a))) != 0 ? a : b;
  else
    return a > b ? a : b;
}

template <typename Running, ReduceKind kKind>
Running combine(Running a, Running b) {
  return kKind == ReduceKind::kSum ? sum<Running>(a, b) : maximum<Running>(a, b);
}

/// Two sources into one or two results, each of which may be one of the sources: all in one pass.
template <typename Stored, typename Running, ReduceKind kKind>
ALTIPLANO_CLONES void reduce_two(int64_t n, const Stored* a, const Stored* b, Stored* x, Stored* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const auto result = combine<Running, kKind>(widen(a[i]), widen(b[i]));
    x[i] = narrow<Stored>(result);
    y[i] = narrow<Stored>(result);
  }
}

template <typename Stored, typename Running, ReduceKind kKind>
ALTIPLANO_CLONES void reduce_typed(const Reduction& r) {
  std::array<Running, kBlock> running;
  constexpr int64_t kSize = sizeof(Stored);
  const auto source = [&](size_t s, int64_t begin) {
    return reinterpret_cast<const Stored*>(r.sources[s] + r.source_offset + begin * kSize);
  };
  for (int64_t begin = 0; begin < r.count; begin += kBlock) {
    const int64_t n = std::min(kBlock, r.count - begin);
    const Stored* first = source(0, begin);
    for (int64_t i = 0; i < n; ++i) running[static_cast<size_t>(i)] = widen(first[i]);
    for (size_t s = 1; s < r.sources.size(); ++s) {
      const Stored* next = source(s, begin);
      for (int64_t i = 0; i < n; ++i) {
        Running& x = running[static_cast<size_t>(i)];
        x = combine<Running, kKind>(x, widen(next[i]));
      }
    }
    std::byte* to = r.out[0] + r.out_offset + begin * kSize;
    auto* result = reinterpret_cast<Stored*>(to);
    for (int64_t i = 0; i < n; ++i) result[i] = narrow<Stored>(running[static_cast<size_t>(i)]);
    for (size_t o = 1; o < r.out.size(); ++o)
      std::memcpy(r.out[o] + r.out_offset + begin * kSize, to, static_cast<size_t>(n * kSize));
  }
}

template <typename Stored, typename Running, ReduceKind kKind>
void reduce_kind(const Reduction& r) {
  if (r.sources.size() != 2 || r.out.size() > 2) return reduce_typed<Stored, Running, kKind>(r);
  const auto source = [&](size_t s) { return reinterpret_cast<const Stored*>(r.sources[s] + r.source_offset); };
  const auto out = [&](size_t o) { return reinterpret_cast<Stored*>(r.out[o] + r.out_offset); };
  reduce_two<Stored, Running, kKind>(r.count, source(0), source(1), out(0), out(r.out.size() - 1));
}

template <typename Stored, typename Running>
void reduce_as(const Reduction& reduction) {
  if (reduction.kind == ReduceKind::kSum)
    reduce_kind<Stored, Running, ReduceKind::kSum>(reduction);
  else
    reduce_kind<Stored, Running, ReduceKind::kMax>(reduction);
}

}  // namespace

void reduce_in_order(const Reduction& reduction) {
  switch (reduction.dtype) {
    case DType::kF64:
      return reduce_as<double, double>(reduction);
    case DType::kF32:
      return reduce_as<float, float>(reduction);
    case DType::kBF16:
      return reduce_as<BF16, float>(reduction);
    case DType::kI32:
      return reduce_as<int32_t, int32_t>(reduction);
    case DType::kI64:
      return reduce_as<int64_t, int64_t>(reduction);
  }
}

void reduce_in_order(void* out, std::span<const std::byte* const> sources, int64_t count, DType dtype,
                     ReduceKind kind) {
  std::byte* const outs[] = {static_cast<std::byte*>(out)};
  reduce_in_order({outs, 0, sources, 0, count, dtype, kind});
}

}  // namespace altiplano
