#pragma once
// Options of model/gpt with Hugging Face's names, and the checked numbers the builder works with.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/api/model.hpp"

namespace altiplano::gpt {

struct GptConfig {
  int64_t layers = 0, hidden = 0, heads = 0, head_size = 0, intermediate = 0, positions = 0, vocabulary = 0;
  bool tied = true;  ///< the head uses the token embedding's table
  double epsilon = 1e-5;
  std::string gelu_form;  ///< tanh | erf
  double residual_dropout = 0, embedding_dropout = 0, attention_dropout = 0;
  double initializer_range = 0.02;
  std::vector<std::pair<std::string, std::string>> frozen;  ///< globs over parameter names, and where each was given
};

std::vector<OptionRecord> gpt_option_records();
/// Refuses combinations no GPT can have, with the numbers and the nearest legal ones.
Result<GptConfig> gpt_config(const Options& options, const ModelRequest& request);

}  // namespace altiplano::gpt
