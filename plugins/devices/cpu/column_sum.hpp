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

/// Two sums over the same rows in one pass, each with the bits of column_sum_tile: terms(r, c) is a pair.
template <typename Terms>
ALTIPLANO_CLONES void column_sum_pair_tile(int64_t rows, int64_t begin, int64_t end, Terms terms, float* first,
                                           float* second) {
  float total[2][kColumnTile] = {}, block[2][kColumnTile];
  const int64_t width = end - begin;
  for (int64_t r = 0; r < rows; r += kRowBlock) {
    for (auto& sums : block)
      for (int64_t c = 0; c < width; ++c) sums[c] = 0;
    const int64_t last = std::min(rows, r + kRowBlock);
    int64_t k = r;
    for (; k + 4 <= last; k += 4) {
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) {
        const auto a = terms(k, begin + c), b = terms(k + 1, begin + c), d = terms(k + 2, begin + c),
                   e = terms(k + 3, begin + c);
        block[0][c] += (a.first + b.first) + (d.first + e.first);
        block[1][c] += (a.second + b.second) + (d.second + e.second);
      }
    }
    for (; k < last; ++k) {
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) {
        const auto a = terms(k, begin + c);
        block[0][c] += a.first;
        block[1][c] += a.second;
      }
    }
    for (size_t i = 0; i < 2; ++i)
      for (int64_t c = 0; c < width; ++c) total[i][c] += block[i][c];
  }
  for (int64_t c = 0; c < width; ++c) first[begin + c] = total[0][c];
  for (int64_t c = 0; c < width; ++c) second[begin + c] = total[1][c];
}

/// Calls sum(begin, end) on tiles of columns, shared out among threads; no two write one cache line.
template <typename Sum>
void for_column_tiles(int64_t threads, int64_t rows, int64_t columns, Sum sum) {
  parallel_ranges(static_cast<int>(threads), (columns + 15) / 16, row_grain(16 * rows),
                  [&](int64_t begin, int64_t end) {
                    const int64_t last = std::min(columns, end * 16);
                    for (int64_t c = begin * 16; c < last; c += kColumnTile) sum(c, std::min(last, c + kColumnTile));
                  });
}

/// out[c] = sum over r of term(r, c).
template <typename Acc, typename Term>
void column_sums(int64_t threads, int64_t rows, int64_t columns, Term term, Acc* out) {
  for_column_tiles(threads, rows, columns,
                   [&](int64_t begin, int64_t end) { column_sum_tile<Acc>(rows, begin, end, term, out); });
}

/// Both sums of terms(r, c), a pair of floats.
template <typename Terms>
void column_sum_pairs(int64_t threads, int64_t rows, int64_t columns, Terms terms, float* first, float* second) {
  for_column_tiles(threads, rows, columns,
                   [&](int64_t begin, int64_t end) { column_sum_pair_tile(rows, begin, end, terms, first, second); });
}

}  // namespace altiplano::cpu
