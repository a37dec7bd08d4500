#pragma once
// Options of model/wide_resnet, with Hugging Face's names of ResNet where it has them, and the checked numbers the
// builder works with.
#include <cstdint>
#include <vector>

#include "framework/api/model.hpp"

namespace altiplano::wide_resnet {

struct WideResnetConfig {
  int64_t image = 0, colors = 0;  ///< rows and columns; channels of the input
  int64_t channels = 0;           ///< of the stem; each further group of blocks has twice as many
  int64_t width = 0;              ///< the inner convolution of a block has this many times its channels
  std::vector<int64_t> depths;    ///< blocks per group
  int64_t classes = 0;
  int64_t samples = 0;  ///< over which batch norm takes its statistics
  double epsilon = 1e-5;
};

std::vector<OptionRecord> wide_resnet_option_records();
/// Refuses combinations that cannot be, with the numbers and legal ones.
Result<WideResnetConfig> wide_resnet_config(const Options& options, const ModelRequest& request);

}  // namespace altiplano::wide_resnet
