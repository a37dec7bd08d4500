#include "plugins/devices/cpu/tile_product.hpp"

namespace altiplano::cpu {
namespace {

using dnnl::memory;

memory::desc matrix(int64_t rows, int64_t columns, DType dtype, bool transposed) {
  const auto type = dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
  return {{rows, columns}, type, transposed ? memory::dims{1, rows} : memory::dims{columns, 1}};
}

dnnl::matmul::primitive_desc describe(const TileProductShape& s, const dnnl::engine& engine) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.adds) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::desc product(matrix(s.m, s.k, DType::kBF16, s.a_transposed),
                                   matrix(s.k, s.n, DType::kBF16, s.b_transposed), matrix(s.m, s.n, s.result, false));
  return {product, attributes, engine};
}

}  // namespace

TileProduct::TileProduct(const TileProductShape& shape, const dnnl::engine& engine, int threads)
    : product_(describe(shape, engine)), primitive_(product_) {
  for (int i = 0; i < threads; ++i) {
    Operands o{memory(product_.src_desc(), engine, nullptr),
               memory(product_.weights_desc(), engine, nullptr),
               memory(product_.dst_desc(), engine, nullptr),
               memory(product_.scratchpad_desc(), engine, nullptr),
               {},
               dnnl::stream(engine)};
    o.arguments = {dnnl_exec_arg_t{DNNL_ARG_SRC, o.a.get()}, dnnl_exec_arg_t{DNNL_ARG_WEIGHTS, o.b.get()},
                   dnnl_exec_arg_t{DNNL_ARG_DST, o.c.get()}, dnnl_exec_arg_t{DNNL_ARG_SCRATCHPAD, o.scratch.get()}};
    operands_.push_back(std::move(o));
  }
}

void TileProduct::run(int thread, const void* a, const void* b, void* c, void* scratch) {
  Operands& o = operands_[static_cast<size_t>(thread)];
  o.a.set_data_handle(const_cast<void*>(a));
  o.b.set_data_handle(const_cast<void*>(b));
  o.c.set_data_handle(c);
  o.scratch.set_data_handle(scratch);
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), o.stream.get(), static_cast<int>(o.arguments.size()),
                                                 o.arguments.data()),
                          "a product of attention failed");
}

TileProduct* TileProducts::get(const TileProductShape& shape) {
  if (shape.m == 0 || shape.n == 0 || shape.k == 0) return nullptr;
  std::unique_ptr<TileProduct>& made = made_[shape];
  if (!made) made = std::make_unique<TileProduct>(shape, engine_, threads_);
  return made.get();
}

int64_t TileProducts::scratch_bytes() const {
  int64_t most = 0;
  for (const auto& [shape, product] : made_) most = std::max(most, product->scratch_bytes());
  return most;
}

bool has_fast_bf16() {
  const auto isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx512_core_amx || isa == dnnl::cpu_isa::avx512_core_bf16;
}

}  // namespace altiplano::cpu
