#pragma once
#include "framework/base/random.hpp"
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

/// What is left of x where the factor is 0 (nothing, even of an x that is not finite) or the scale of what is kept.
inline float kept(float x, float factor) {
  return factor != 0.0f ? x * factor : 0.0f;
}
template <typename T>
ALTIPLANO_CLONES void keep_range(int64_t n, const T* x, const float* factors, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = from_acc<T>(kept(to_acc(x[i]), factors[i]));
}

/// Which elements dropout keeps: Philox words of the global positions, compared as random_uniform() >= p would.
class DropoutMask {
 public:
  static constexpr int64_t kPiece = 256;  ///< elements whose factors lie on the stack at a time

  DropoutMask(const KernelRequest& request, double p);

  /// Factors (0, or 1 / (1 - p)) of `n` <= kPiece elements whose global positions start at `index`.
  void factors(uint64_t step, uint64_t index, int64_t n, float* factors) const;

  /// Calls use(at, count, factors) for `n` elements in pieces.
  template <typename Use>
  void in_pieces(uint64_t step, uint64_t index, int64_t n, Use&& use) const {
    float piece[kPiece];
    for (int64_t at = 0; at < n; at += kPiece) {
      const int64_t count = std::min(kPiece, n - at);
      factors(step, index + static_cast<uint64_t>(at), count, piece);
      use(at, count, piece);
    }
  }

  /// y = x kept and scaled, for `n` elements whose global positions start at `index`.
  template <typename T>
  void apply(uint64_t step, uint64_t index, int64_t n, const T* x, T* y) const {
    in_pieces(step, index, n,
              [&](int64_t at, int64_t count, const float* piece) { keep_range(count, x + at, piece, y + at); });
  }

 private:
  uint64_t stream_ = 0;
  bool keeps_any_ = true;       ///< p may be so close to 1 that no word is kept
  uint32_t smallest_kept_ = 0;  ///< words from here on are kept
  float scale_ = 1;
};

/// Global row-major positions of the rows (last dim) of a local box.
struct RowPositions {
  GlobalIndex global;
  Shape extents;
  explicit RowPositions(const OperandLayout& layout) : global(layout), extents(layout.extents) {}

  uint64_t of(int64_t row, int64_t batch_offset) const {
    int64_t index = global.first + batch_offset * global.batch_stride;
    for (size_t i = extents.size() - std::min<size_t>(1, extents.size()); i-- > 0;) {
      index += row % extents[i] * global.strides[i];
      row /= extents[i];
    }
    return static_cast<uint64_t>(index);
  }
};

}  // namespace altiplano::cpu
