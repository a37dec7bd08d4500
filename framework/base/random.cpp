#include "framework/base/random.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "framework/base/clones.hpp"

namespace altiplano {
namespace {

// The formulas are written out, without branches and calls, so that a compiler makes vectors of the loops around them;
// the C library's would be called once per element. Both are right to about an ulp of a double.

/// ln(u) for normal u > 0: u = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), s = f / (2 + f), and the
/// polynomial in s^2 of fdlibm's e_log.c (Sun Microsystems, 1993).
inline double natural_logarithm(double u) {
  constexpr uint64_t kSqrtHalf = 0x3FE6A09E667F3BCDu, kFraction = 0x000FFFFFFFFFFFFFu;
  const uint64_t shifted = std::bit_cast<uint64_t>(u) - kSqrtHalf;
  // k + 2^52 as a double, from its bits: of 64-bit integers older vector units convert none.
  const uint64_t exponent = ((shifted >> 52) + 1024u) & 0x7FFu;
  const double k = std::bit_cast<double>(0x4330000000000000u | exponent) - (4503599627370496.0 + 1024.0);
  const double f = std::bit_cast<double>((shifted & kFraction) + kSqrtHalf) - 1.0;
  const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  double r = 1.479819860511658591e-01;
  r = r * z + 1.531383769920937332e-01;
  r = r * z + 1.818357216161805012e-01;
  r = r * z + 2.222219843214978396e-01;
  r = r * z + 2.857142874366239149e-01;
  r = r * z + 3.999999999940941908e-01;
  r = r * z + 6.666666666666735130e-01;
  r = r * z;
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  return k * kLn2High - ((half - (s * (half + r) + k * kLn2Low)) - f);
}

/// cos(2 pi v) for v in (0, 1), as -sin(x) with x = 2 pi (1/4 - |v - 1/2|), |x| <= pi/2; sin by its Taylor series
/// (what is left out is below 2e-18).
inline double cosine_of_turns(double v) {
  const double x = 2.0 * std::numbers::pi * (0.25 - std::abs(v - 0.5)), z = x * x;
  double r = 1.0 / 51090942171709440000.0;
  r = r * z - 1.0 / 121645100408832000.0;
  r = r * z + 1.0 / 355687428096000.0;
  r = r * z - 1.0 / 1307674368000.0;
  r = r * z + 1.0 / 6227020800.0;
  r = r * z - 1.0 / 39916800.0;
  r = r * z + 1.0 / 362880.0;
  r = r * z - 1.0 / 5040.0;
  r = r * z + 1.0 / 120.0;
  r = r * z - 1.0 / 6.0;
  return -(x + x * (z * r));
}

inline double normal_of_words(uint32_t first, uint32_t second) {
  constexpr double kUnit = 1.0 / 4294967296.0;
  const double u = (static_cast<double>(first) + 0.5) * kUnit, v = (static_cast<double>(second) + 0.5) * kUnit;
  return std::sqrt(-2.0 * natural_logarithm(u)) * cosine_of_turns(v);
}

/// Elements at a time: their words stay in the first-level cache.
constexpr size_t kBlock = 256;
struct WordBlock {
  alignas(64) uint32_t first[kBlock], second[kBlock];
};

/// The first two words of quads first, first + 1, ..., first + kBlock - 1 (Philox4x32-10, as random_quad).
ALTIPLANO_CLONES void draw_words(uint64_t stream, uint64_t step, uint64_t first, WordBlock& words) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
#pragma omp simd
  for (size_t i = 0; i < kBlock; ++i) {
    const uint64_t quad = first + i;
    auto x0 = static_cast<uint32_t>(quad), x1 = static_cast<uint32_t>(quad >> 32);
    auto x2 = static_cast<uint32_t>(step), x3 = static_cast<uint32_t>(step >> 32);
    auto key0 = static_cast<uint32_t>(stream), key1 = static_cast<uint32_t>(stream >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{kMultiplier0} * x0, product1 = uint64_t{kMultiplier1} * x2;
      x0 = static_cast<uint32_t>(product1 >> 32) ^ x1 ^ key0;
      x2 = static_cast<uint32_t>(product0 >> 32) ^ x3 ^ key1;
      x1 = static_cast<uint32_t>(product1);
      x3 = static_cast<uint32_t>(product0);
      key0 += kWeyl0;
      key1 += kWeyl1;
    }
    words.first[i] = x0;
    words.second[i] = x1;
  }
}

ALTIPLANO_CLONES void normals_of_words(const WordBlock& words, size_t count, double* out) {
#pragma omp simd
  for (size_t i = 0; i < count; ++i) out[i] = normal_of_words(words.first[i], words.second[i]);
}

}  // namespace

double random_normal(uint64_t stream, uint64_t step, uint64_t index) {
  // Each element takes its own quad (index, not index/4): two words are used.
  const auto words = random_quad(stream, step, index);
  return normal_of_words(words[0], words[1]);
}

void random_normals(uint64_t stream, uint64_t step, uint64_t first, std::span<double> out) {
  WordBlock words;
  for (size_t at = 0; at < out.size(); at += kBlock) {
    draw_words(stream, step, first + at, words);
    normals_of_words(words, std::min(kBlock, out.size() - at), out.data() + at);
  }
}

}  // namespace altiplano
