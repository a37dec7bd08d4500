// Philox4x32-10 (framework/base/random.hpp) in the lanes of a vector. Each of a quad's four words has a 64-bit lane,
// for then a round is two multiplications of the low halves and the shift of their products: what the upper halves hold
// besides does not matter. The compiler finds neither this form nor a vector form of the library's.
#include "plugins/devices/cpu/random_words.hpp"

#include "framework/base/random.hpp"
#include "plugins/devices/cpu/kernel.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace altiplano::cpu {
namespace {

#if defined(__x86_64__)

constexpr int64_t kLanes = 4;

struct Quads {
  __m256i a, b, c, d;
};

__attribute__((target("avx2"))) Quads philox(uint64_t stream, Quads q) {
  const __m256i a_factor = _mm256_set1_epi64x(0xD2511F53), c_factor = _mm256_set1_epi64x(0xCD9E8D57);
  uint64_t first_key = stream, second_key = stream >> 32;
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const __m256i of_a = _mm256_mul_epu32(a_factor, q.a), of_c = _mm256_mul_epu32(c_factor, q.c);
    const auto key = [](uint64_t word) { return static_cast<long long>(word); };
    q.a = _mm256_srli_epi64(of_c, 32) ^ q.b ^ _mm256_set1_epi64x(key(first_key));
    q.c = _mm256_srli_epi64(of_a, 32) ^ q.d ^ _mm256_set1_epi64x(key(second_key));
    q.b = of_c;
    q.d = of_a;
    first_key += 0x9E3779B9;
    second_key += 0xBB67AE85;
  }
  return q;
}

/// The words of four quads in order.
__attribute__((target("avx2"))) void store(const Quads& q, uint32_t* words) {
  const __m256i low = _mm256_set1_epi64x(0xFFFFFFFF);
  const __m256i ab = _mm256_or_si256(_mm256_and_si256(q.a, low), _mm256_slli_epi64(q.b, 32));
  const __m256i cd = _mm256_or_si256(_mm256_and_si256(q.c, low), _mm256_slli_epi64(q.d, 32));
  const __m256i even = _mm256_unpacklo_epi64(ab, cd), odd = _mm256_unpackhi_epi64(ab, cd);
  auto* to = reinterpret_cast<__m256i*>(words);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
}

/// Whole vectors only; returns how many quads that were.
__attribute__((target("avx2"))) int64_t words_of_vectors(uint64_t stream, uint64_t step, uint64_t quad, int64_t quads,
                                                         uint32_t* words) {
  int64_t i = 0;
  for (; i + kLanes <= quads; i += kLanes) {
    const auto first = static_cast<long long>(quad + static_cast<uint64_t>(i));
    Quads q;
    q.a = _mm256_add_epi64(_mm256_set1_epi64x(first), _mm256_set_epi64x(3, 2, 1, 0));
    q.b = _mm256_srli_epi64(q.a, 32);
    q.c = _mm256_set1_epi64x(static_cast<long long>(step));
    q.d = _mm256_set1_epi64x(static_cast<long long>(step >> 32));
    store(philox(stream, q), words + 4 * i);
  }
  return i;
}

#endif

int64_t words_at_once(uint64_t stream, uint64_t step, uint64_t quad, int64_t quads, uint32_t* words) {
#if defined(__x86_64__)
  static const bool has_vectors = __builtin_cpu_supports("avx2");
  if (has_vectors) return words_of_vectors(stream, step, quad, quads, words);
#endif
  return 0;
}

}  // namespace

void random_words(uint64_t stream, uint64_t step, uint64_t quad, int64_t quads, uint32_t* words) {
  for (int64_t i = words_at_once(stream, step, quad, quads, words); i < quads; ++i) {
    const auto four = random_quad(stream, step, quad + static_cast<uint64_t>(i));
    std::copy(four.begin(), four.end(), words + 4 * i);
  }
}

}  // namespace altiplano::cpu
