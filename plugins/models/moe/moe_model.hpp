#pragma once
// A GPT-2 whose feed-forward layers are experts in every n-th block (GShard: Lepikhin et al., ICLR 2021): each token
// goes to its two likeliest experts. Layers "embedding", "block.0" ..., "head"; dims: b batch, s sequence, d hidden,
// h heads, k head size, f feed-forward, v vocabulary, e experts, c capacity: tokens of one sample that an expert takes.
#include "plugins/models/moe/moe_options.hpp"

namespace altiplano::moe {

class MoeModel : public Model {
 public:
  std::vector<OptionRecord> option_records() const override { return moe_option_records(); }
  Result<ModelGraph> build(const Options& options, const ModelRequest& request) const noexcept override;
};

}  // namespace altiplano::moe
