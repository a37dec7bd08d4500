#pragma once
// Counter-based random numbers: a pure function of (seed, step, tensor name, coordinate), never of rank or microbatch
// (design invariant 2). Philox4x32-10 of Random123 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011).
//
// A stream is one (seed, name); element `index` is the row-major position in the *global* tensor (for activations: in
// the global-batch tensor), `step` the training step (0 for initial weights).
#include <Random123/philox.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace altiplano {

/// 64-bit stream key of (seed, name); FNV-1a, the same on every machine.
inline uint64_t random_stream(uint64_t seed, std::string_view name) {
  uint64_t h = 14695981039346656037ull ^ (seed * 0x9E3779B97F4A7C15ull);
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

/// The four 32-bit words that elements 4*quad .. 4*quad+3 use.
inline std::array<uint32_t, 4> random_quad(uint64_t stream, uint64_t step, uint64_t quad) {
  r123::Philox4x32 generator;
  r123::Philox4x32::ctr_type counter = {{static_cast<uint32_t>(quad), static_cast<uint32_t>(quad >> 32),
                                         static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)}};
  r123::Philox4x32::key_type key = {{static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)}};
  auto words = generator(counter, key);
  return {words[0], words[1], words[2], words[3]};
}

inline uint32_t random_word(uint64_t stream, uint64_t step, uint64_t index) {
  return random_quad(stream, step, index / 4)[index % 4];
}

/// Uniform in (0, 1), 32 bits of resolution.
inline double random_uniform(uint64_t stream, uint64_t step, uint64_t index) {
  return (static_cast<double>(random_word(stream, step, index)) + 0.5) * (1.0 / 4294967296.0);
}

/// Standard normal by Box-Muller on the element's own pair of words (so that elements are independent of layout).
double random_normal(uint64_t stream, uint64_t step, uint64_t index);

/// The same bits for the elements first, first + 1, ..., several at a time.
void random_normals(uint64_t stream, uint64_t step, uint64_t first, std::span<double> out);

}  // namespace altiplano
