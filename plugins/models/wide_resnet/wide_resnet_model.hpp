#pragma once
// Wide residual networks: images, bottleneck blocks (He et al., CVPR 2016) whose inner convolution is wider (Zagoruyko
// and Komodakis, BMVC 2016). Layers "stem", "block.0" ..., "head"; dims: n samples, y and x rows and columns, c
// channels.
#include "plugins/models/wide_resnet/wide_resnet_options.hpp"

namespace altiplano::wide_resnet {

class WideResnetModel : public Model {
 public:
  std::vector<OptionRecord> option_records() const override { return wide_resnet_option_records(); }
  Result<ModelGraph> build(const Options& options, const ModelRequest& request) const noexcept override;
};

}  // namespace altiplano::wide_resnet
