#pragma once
// An einsum equation of two operands as one batched matrix product: letters grouped into batch (in A, B and C), m (A
// and C), n (B and C) and k (summed). Pure functions over shapes; matmul.cpp runs the result.
#include <array>
#include <string>
#include <vector>

#include "framework/api/device.hpp"
#include "plugins/devices/cpu/strided.hpp"

namespace altiplano::cpu {

enum ProductOperand : size_t { kA, kB, kC };

struct ProductLetter {
  std::string name;
  int64_t extent = 1;
  std::array<int64_t, 3> strides{};  ///< in A, B, C; 0 where the letter is absent
  std::array<bool, 3> in{};
};

struct ProductLetters {
  std::vector<ProductLetter> batch, m, n, k;
  bool swapped = false;  ///< A and B changed roles so that C is row-major: A below is the op's second input

  /// Refuses what Einsum::parse refuses and extents that do not fit, with both.
  static Result<ProductLetters> from(const std::string& equation, const Shape& a, const Shape& b, const Shape& c);
  /// Sorts k by the operand's dims, outermost first.
  void order_k_by(ProductOperand operand);
};

/// One dim of a matrix view.
struct ViewDim {
  int64_t extent = 1, stride = 1;
};

/// An operand as oneDNN sees it: batch dims, then rows and columns. One of rows and columns has stride 1.
struct MatrixView {
  std::vector<ViewDim> batch;
  ViewDim rows, columns;
  bool staged =
      false;  ///< not expressible where it lies: packed row-major into workspace by `packing` first (C: unpacked after)
  StridedCopy packing;  ///< source: the operand as it lies; destination: packed
  int64_t num_elements() const;
};

struct ProductViews {
  MatrixView a, b, c;
  int64_t m = 1, n = 1, k = 1, batch = 1;
};

/// Views of all three; `must_stage` forces staging (another dtype). `turned`: that operand of the views is staged the
/// other way round (columns outermost where it lies row-major). Refuses more than StridedCopy::kMaxDims dims.
Result<ProductViews> plan_product(ProductLetters letters, std::array<bool, 3> must_stage,
                                  std::array<bool, 3> turned = {});

/// What decides how fast a product is: extents, and how each operand lies. "8*64x128x32 nt": 8 times m 64, n 128, k 32,
/// the second operand column-major; "s": staged; strides where they are not those of a dense matrix.
std::string shape_text(const ProductViews& views);

}  // namespace altiplano::cpu
