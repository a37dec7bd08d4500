#pragma once
// The forms of a product: which operands are copied into another layout first, and which of oneDNN's two doors computes
// it. Which is the fastest depends on shape, processor and library, and is measured by who asks.
#include <string>
#include <vector>

#include "plugins/devices/cpu/kernel.hpp"
#include "plugins/devices/cpu/product.hpp"

namespace altiplano::cpu {

enum class ProductForm : uint8_t {
  kPlain,    ///< operands where they lie, or staged where oneDNN cannot take them so
  kPacked,   ///< the second operand in the layout that oneDNN likes best, packed at each call
  kTurnedB,  ///< the second operand copied the other way round
  kTurnedA,  ///< the first one
  kSgemm,    ///< dnnl_sgemm, f32 only
};
const char* to_string(ProductForm form);  ///< "plain", "packed", "turned_b", ...

/// Types of a product's operands, in the order of its views: in memory, and in the product.
struct ProductTypes {
  std::array<DType, 3> stored, computed;
};

/// One form, ready to be made into a kernel: what it needs is known, nothing is compiled.
struct ProductPlan {
  ProductForm form = ProductForm::kPlain;
  bool swapped = false;  ///< the views' A is the op's second input
  ProductViews views;
  ProductTypes types;
  std::array<int64_t, 3> staging{};                ///< offsets of staged operands in the workspace
  dnnl::matmul::primitive_desc product;            ///< empty for kSgemm
  int64_t packed = 0, scratch = 0, workspace = 0;  ///< offsets of the packed operand and of oneDNN's scratch; bytes
};

/// All forms of the product, kPlain first. A form that would copy more than kMostCopied bytes is none. Throws
/// dnnl::error when oneDNN has no product for these types.
constexpr int64_t kMostCopied = int64_t{16} << 20;
Result<std::vector<ProductPlan>> plan_product_forms(const CpuContext& context, const ProductLetters& letters,
                                                    std::array<DType, 3> stored, DType compute);

}  // namespace altiplano::cpu
