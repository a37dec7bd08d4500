#pragma once
// Sums down the columns of a matrix: bias and norm gradients. Threads share out the columns, never the rows, so the
// result does not depend on their number; rows are summed in blocks of 64 first, which keeps the rounding error of long
// sums small.
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

constexpr int64_t kColumnTile = 256;  ///< columns whose running sums stay in registers and L1
constexpr int64_t kRowBlock = 64;

template <typename Acc, typename Term>
ALTIPLANO_CLONES void column_sum_tile(int64_t rows, int64_t begin, int64_t end, Term term, Acc* out) {
  Acc total[kColumnTile] = {}, block[kColumnTile];
  const int64_t width = end - begin;
  for (int64_t r = 0; r < rows; r += kRowBlock) {
    for (int64_t c = 0; c < width; ++c) block[c] = 0;
    const int64_t last = std::min(rows, r + kRowBlock);
    int64_t k = r;
    for (; k + 4 <= last; k += 4) {  // four rows for each time that the sums are loaded and stored
#pragma omp simd
      for (int64_t c = 0; c < width; ++c)
        block[c] += (term(k, begin + c) + term(k + 1, begin + c)) + (term(k + 2, begin + c) + term(k + 3, begin + c));
    }
    for (; k < last; ++k) {
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) block[c] += term(k, begin + c);
    }
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) total[c] += block[c];
  }
  for (int64_t c = 0; c < width; ++c) out[begin + c] = total[c];
}

/// out[c] = sum over r of term(r, c).
template <typename Acc, typename Term>
void column_sums(int64_t threads, int64_t rows, int64_t columns, Term term, Acc* out) {
  // Ranges start at multiples of 16 columns: no two threads write one cache line.
  parallel_ranges(static_cast<int>(threads), (columns + 15) / 16, row_grain(16 * rows),
                  [&](int64_t begin, int64_t end) {
                    const int64_t last = std::min(columns, end * 16);
                    for (int64_t c = begin * 16; c < last; c += kColumnTile) {
                      column_sum_tile<Acc>(rows, c, std::min(last, c + kColumnTile), term, out);
                    }
                  });
}

}  // namespace altiplano::cpu
