#pragma once
#include "plugins/devices/cpu/attention_block.hpp"

namespace altiplano::cpu {

/// Whether the tile kernels below are made for such heads on this CPU.
bool attends_in_tiles(const AttentionShape& a, DType dtype);

/// attention and attention_grad over bf16 heads, products in tiles. Throw dnnl::error.
Result<std::unique_ptr<Kernel>> make_tiled_attention(const AttentionShape& a, const CpuContext& context);
Result<std::unique_ptr<Kernel>> make_tiled_attention_grad(const AttentionShape& a, const CpuContext& context);

}  // namespace altiplano::cpu
