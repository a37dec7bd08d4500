#pragma once
// Options of model/moe, with Hugging Face's names of GPT-2 and Mixtral, and the checked numbers the builder works with.
#include <cstdint>
#include <vector>

#include "framework/api/model.hpp"

namespace altiplano::moe {

struct MoeConfig {
  int64_t layers = 0, hidden = 0, heads = 0, head_size = 0, intermediate = 0, positions = 0, vocabulary = 0;
  int64_t experts = 0;
  int64_t every = 2;     ///< blocks 0, every, 2 every ... have experts
  int64_t capacity = 0;  ///< tokens of one sample that an expert takes
  bool tied = true;      ///< the head uses the token embedding's table
  double epsilon = 1e-5, initializer_range = 0.02;
};

std::vector<OptionRecord> moe_option_records();
/// Refuses combinations that cannot be, with the numbers and the nearest legal ones.
Result<MoeConfig> moe_config(const Options& options, const ModelRequest& request);

}  // namespace altiplano::moe
