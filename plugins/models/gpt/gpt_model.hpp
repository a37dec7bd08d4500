#pragma once
// GPT-2: pre-norm transformer decoder. Layers "embedding", "block.0" ..., "head"; dims: b batch, s sequence, d hidden,
// h heads, k head size, f feed-forward, v vocabulary. Query, key and value are one parameter [d,3,h,k], so that a box
// of heads is a box.
#include "plugins/models/gpt/gpt_options.hpp"

namespace altiplano::gpt {

class GptModel : public Model {
 public:
  std::vector<OptionRecord> option_records() const override { return gpt_option_records(); }
  Result<ModelGraph> build(const Options& options, const ModelRequest& request) const noexcept override;
};

}  // namespace altiplano::gpt
