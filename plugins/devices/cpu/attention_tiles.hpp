#pragma once
// What attention and its gradient share: shapes, scratch, and small products of four query rows at a time.
//
// One (batch, head) pair is one unit of work. Its keys and values are widened to f32 once, padded to tiles, keys
// transposed, so that every inner loop runs along contiguous memory with four rows of accumulators in registers. With a
// causal mask a block of four rows only looks at the keys its last row may see; where documents start, only at those
// from its first row's document on.
#include <optional>

#include "plugins/devices/cpu/dropout_mask.hpp"
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

constexpr int64_t kQueryRows = 4;
constexpr int64_t kTile = 32;

struct AttentionShape {
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, width = 0;  ///< local b, s, t, h, k
  int64_t padded_keys = 0, padded_width = 0;                       ///< multiples of kTile
  int64_t query_origin = 0, key_origin = 0;
  float scale = 1;
  bool causal = true;
  std::optional<DropoutMask> dropout;
  // Global [b,h,s,t] position of the local (0,0,0,0), and strides.
  int64_t first = 0, batch_stride = 0, head_stride = 0, query_stride = 0;
  bool batch_moves = false;
  int document_start = -1;  ///< the input that says where each query's document starts; -1: none

  /// From the request's first three inputs q, k, v, and document starts if there is an input `start_input`; refuses
  /// wrong shapes.
  static Result<AttentionShape> from(const KernelRequest& request, size_t start_input);

  int64_t row_stride() const { return heads * width; }
  int64_t offset(int64_t b, int64_t h, int64_t rows) const { return b * rows * row_stride() + h * width; }
  /// How many of the local keys the local query s may see.
  int64_t visible(int64_t s) const {
    return causal ? std::clamp<int64_t>(query_origin + s + 1 - key_origin, 0, keys) : keys;
  }
  /// The first local key that the local query s of sample b sees; at most its last one.
  int64_t first_visible(const KernelCall& call, int64_t b, int64_t s) const {
    if (document_start < 0) return 0;
    const int64_t start = input<int32_t>(call, static_cast<size_t>(document_start))[b * queries + s];
    return std::clamp<int64_t>(start - key_origin, 0, std::max<int64_t>(0, visible(s) - 1));
  }
  /// The same for the rows s, s + 1, ... s + rows - 1, rounded down to a tile.
  int64_t first_tile(const KernelCall& call, int64_t b, int64_t s, int64_t rows) const {
    int64_t first = first_visible(call, b, s);
    for (int64_t r = 1; r < rows; ++r) first = std::min(first, first_visible(call, b, s + r));
    return first / kTile * kTile;
  }
  uint64_t mask_index(int64_t b, int64_t h, int64_t s, int64_t batch_offset) const {
    return static_cast<uint64_t>(first + (b + (batch_moves ? batch_offset : 0)) * batch_stride + h * head_stride +
                                 s * query_stride);
  }
};

/// out[r][j] = sum over i < n of coefficients[r][i] * matrix[i][j], r < 4, j < width (a multiple of kTile).
void multiply_rows(int64_t n, int64_t width, const float* coefficients, int64_t coefficient_stride, const float* matrix,
                   int64_t matrix_stride, float* out, int64_t out_stride);

/// out[i][j] += sum over r < 4 of coefficients[r][i] * rows[r][j], i < n, j < width.
void add_outer(int64_t n, int64_t width, const float* coefficients, int64_t coefficient_stride, const float* rows,
               float* out);

/// to[row][i] (stride padded) = factor * from[row][i], `rows` rows, zeros up to `padded_rows` rows and in the padding.
template <typename T>
void widen_rows(int64_t rows, int64_t padded_rows, int64_t width, int64_t padded, float factor, const T* from,
                int64_t stride, float* to) {
  for (int64_t r = 0; r < padded_rows; ++r) {
    for (int64_t i = 0; i < padded; ++i)
      to[r * padded + i] = r < rows && i < width ? to_acc(from[r * stride + i]) * factor : 0.0f;
  }
}

/// to[i][row] = from[row][i]: keys along the contiguous dim.
template <typename T>
void widen_transposed(int64_t rows, int64_t width, int64_t padded_rows, const T* from, int64_t stride, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < width; ++i) to[i * padded_rows + r] = to_acc(from[r * stride + i]);
  }
  for (int64_t i = 0; i < width; ++i) std::fill(to + i * padded_rows + rows, to + (i + 1) * padded_rows, 0.0f);
}

}  // namespace altiplano::cpu
