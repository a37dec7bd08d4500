#pragma once
// Small bf16 products for one thread where the CPU multiplies bf16 itself (AMX tiles, AVX512_BF16): oneDNN matmuls made
// beforehand.
#include <map>
#include <tuple>
#include <vector>

#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

/// c[m,n] = a[m,k] b[k,n], or +=; a and b are bf16. Every operand is dense (only then has oneDNN its fast kernels), a and b
/// may be stored transposed.
struct TileProductShape {
  int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
  DType result = DType::kF32;  ///< f32 or bf16
  bool adds = false;
  auto operator<=>(const TileProductShape&) const = default;
};

/// One product, which `threads` threads may run at the same time, each with its number and scratch.
class TileProduct {
 public:
  /// Throws dnnl::error.
  TileProduct(const TileProductShape& shape, const dnnl::engine& engine, int threads);
  int64_t scratch_bytes() const { return static_cast<int64_t>(product_.scratchpad_desc().get_size()); }
  std::string implementation() const { return product_.impl_info_str(); }
  /// `scratch`: scratch_bytes(), aligned to 64. Throws dnnl::error.
  void run(int thread, const void* a, const void* b, void* c, void* scratch);

 private:
  struct Operands {
    dnnl::memory a, b, c, scratch;
    std::array<dnnl_exec_arg_t, 4> arguments;
    dnnl::stream stream;
  };
  dnnl::matmul::primitive_desc product_;
  dnnl::matmul primitive_;
  std::vector<Operands> operands_;  ///< by thread
};

/// The products of a kernel, each shape made once.
class TileProducts {
 public:
  TileProducts(const CpuContext& context, int threads) : engine_(context.engine), threads_(threads) {}
  /// Lives as long as this; nullptr where a dim is 0. Throws dnnl::error.
  TileProduct* get(const TileProductShape& shape);
  /// Of the hungriest product.
  int64_t scratch_bytes() const;

 private:
  dnnl::engine engine_;
  int threads_;
  std::map<TileProductShape, std::unique_ptr<TileProduct>> made_;
};

/// Whether this CPU multiplies bf16 faster than f32.
bool has_fast_bf16();

}  // namespace altiplano::cpu
