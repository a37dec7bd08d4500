#include "plugins/models/wide_resnet/wide_resnet_model.hpp"

#include <cmath>
#include <exception>

#include "framework/graph/builder.hpp"

namespace altiplano::wide_resnet {
namespace {

constexpr int64_t kOutward = 4;  // channels of a block's result per channel of its group

class WideResnetWriter {
 public:
  WideResnetWriter(const WideResnetConfig& config, const ModelRequest& request)
      : c_(config), batch_(request.global_batch), b_("wide_resnet") {}

  Result<ModelGraph> write() {
    b_.layer("stem");
    const ValueId images = b_.input("images", {batch_, c_.image, c_.image, c_.colors}, DType::kF32);
    ValueId x = relu("stem.relu", norm("stem.norm", conv("stem.conv", images, 7, c_.channels, 2), 1));
    x = b_.op1("max_pool", "stem.pool", {x}, {{"window", int64_t{3}}, {"stride", int64_t{2}}, {"padding", int64_t{1}}});
    int64_t number = 0;
    for (size_t group = 0; group < c_.depths.size(); ++group)
      for (int64_t i = 0; i < c_.depths[group]; ++i)
        x = block(fmt::format("block.{}", number++), x, c_.channels << group, group > 0 && i == 0 ? 2 : 1);
    b_.layer("head");
    const ValueId labels = b_.input("labels", {batch_, 1}, DType::kI32);
    const ValueId logits = head(x);
    auto [loss_sum, count] = b_.cross_entropy("loss", logits, labels);
    return b_.finish({images, labels}, loss_sum, count, logits);
  }

 private:
  /// Uniform with the variance 2 / (values a result is summed from) (He et al., ICCV 2015).
  static Initializer spread(int64_t summed) {
    const double most = std::sqrt(6.0 / static_cast<double>(summed));
    return {Initializer::Kind::kUniform, -most, most};
  }
  int64_t channels_of(ValueId x) const { return b_.status().is_ok() ? b_.graph().value(x).shape.back() : 1; }

  /// A square filter of odd `size`, padded so that stride 1 keeps rows and columns.
  ValueId conv(const std::string& name, ValueId x, int64_t size, int64_t channels, int64_t stride = 1) {
    const int64_t in = channels_of(x);
    const ValueId filter = b_.parameter(name + ".weight", {size, size, in, channels}, spread(size * size * in));
    return b_.op1("conv2d", name, {x, filter}, {{"stride", stride}, {"padding", (size - 1) / 2}});
  }

  /// Starts with the weight `scale`.
  ValueId norm(const std::string& name, ValueId x, double scale) {
    const int64_t channels = channels_of(x);
    const ValueId weight = b_.parameter(name + ".weight", {channels}, {Initializer::Kind::kConstant, scale, 0}, false);
    const ValueId bias = b_.parameter(name + ".bias", {channels}, {Initializer::Kind::kConstant, 0, 0}, false);
    const Attributes attributes{{"samples", c_.samples}, {"epsilon", c_.epsilon}};
    const auto moments = b_.op("batch_moments", name + ".moments", {x}, {{"samples", c_.samples}});
    if (moments.empty()) return {};
    return b_.op1("batch_norm", name, {x, moments[0], moments[1], weight, bias}, attributes);
  }
  ValueId relu(const std::string& name, ValueId x) { return b_.op1("relu", name, {x}); }

  /// The last norm of a block starts at 0, so that the block starts as the identity.
  ValueId block(const std::string& name, ValueId x, int64_t channels, int64_t stride) {
    b_.layer(name);
    ValueId y = relu(name + ".relu1", norm(name + ".norm1", conv(name + ".conv1", x, 1, channels), 1));
    y = conv(name + ".conv2", y, 3, channels * c_.width, stride);
    y = relu(name + ".relu2", norm(name + ".norm2", y, 1));
    y = norm(name + ".norm3", conv(name + ".conv3", y, 1, channels * kOutward), 0);
    if (stride != 1 || channels_of(x) != channels * kOutward)
      x = norm(name + ".shortcut.norm", conv(name + ".shortcut.conv", x, 1, channels * kOutward, stride), 1);
    return relu(name + ".relu3", b_.add(name + ".residual", x, y));
  }

  ValueId head(ValueId x) {
    const int64_t channels = channels_of(x);
    const ValueId mean = b_.reshape("head.features", b_.op1("mean_pool", "head.pool", {x}), {batch_, 1, channels});
    const ValueId weight = b_.parameter("head.weight", {c_.classes, channels}, spread(3 * channels));
    const ValueId bias = b_.parameter("head.bias", {c_.classes}, {Initializer::Kind::kConstant, 0, 0}, false);
    return b_.add_bias("head.logits", b_.matmul("head.product", "[b,s,d] [v,d] -> [b,s,v]", mean, weight), bias);
  }

  const WideResnetConfig& c_;
  int64_t batch_;
  GraphBuilder b_;
};

}  // namespace

Result<ModelGraph> WideResnetModel::build(const Options& options, const ModelRequest& request) const noexcept {
  try {
    ALTIPLANO_ASSIGN(const WideResnetConfig config, wide_resnet_config(options, request));
    return WideResnetWriter(config, request).write();
  } catch (const std::exception& error) {
    return runtime_failure("model/wide_resnet: {}", error.what());
  }
}

}  // namespace altiplano::wide_resnet
