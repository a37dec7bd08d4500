#include "plugins/models/wide_resnet/wide_resnet_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace altiplano::wide_resnet {
namespace {

constexpr int64_t kMostSamples = 64;  // of batch norm, where nobody says

OptionRecord count(std::string key, int64_t default_value, double most, std::string help) {
  OptionRecord record;
  record.key = std::move(key);
  record.type = OptionType::kInt;
  record.default_value = default_value;
  record.help = std::move(help);
  record.minimum = 1;
  record.maximum = most;
  return record;
}

std::vector<int64_t> divisors(int64_t number, int64_t most) {
  std::vector<int64_t> found;
  for (int64_t i = 1; i <= std::min(number, most); ++i)
    if (number % i == 0) found.push_back(i);
  return found;
}

}  // namespace

std::vector<OptionRecord> wide_resnet_option_records() {
  OptionRecord depths;
  depths.key = "depths";
  depths.type = OptionType::kIntList;
  depths.default_value = std::vector<int64_t>{3, 4, 6, 3};
  depths.help = "Blocks per group; [3, 4, 6, 3] makes 50 layers of convolutions, [3, 4, 23, 3] 101.";
  depths.minimum = 1;
  depths.maximum = 1024;
  OptionRecord samples = count(
      "batch_norm_samples", 1, 1 << 20,
      "Samples over which batch norm takes its statistics: what is computed at once, microbatch x replicas; auto: "
      "the largest divisor of the global batch up to 64.");
  samples.default_value = std::monostate();
  samples.allow_auto = true;
  OptionRecord epsilon;
  epsilon.key = "batch_norm_epsilon";
  epsilon.type = OptionType::kFloat;
  epsilon.default_value = 1e-5;
  epsilon.help = "Added to the variance in batch norms.";
  epsilon.minimum = 0;
  epsilon.maximum = 1;
  return {
      count("image_size", 224, 1 << 14, "Rows and columns of an image."),
      count("num_channels", 3, 1 << 10, "Channels of an image."),
      count("embedding_size", 64, 1 << 16,
            "Channels of the stem; every group of blocks has twice those of the one before."),
      count("width_factor", 2, 1 << 10, "The inner convolution of a block is wider by this."),
      std::move(depths),
      count("num_labels", 1000, 1 << 24, "Classes."),
      std::move(samples),
      std::move(epsilon),
  };
}

Result<WideResnetConfig> wide_resnet_config(const Options& options, const ModelRequest& request) {
  WideResnetConfig config;
  config.image = options.get_int("image_size");
  config.colors = options.get_int("num_channels");
  config.channels = options.get_int("embedding_size");
  config.width = options.get_int("width_factor");
  config.depths = options.get_ints("depths");
  config.classes = options.get_int("num_labels");
  config.epsilon = options.get_float("batch_norm_epsilon");
  if (request.global_batch < 1 || request.sequence_length < 1)
    return invalid_argument("model/wide_resnet: a batch of {} images, train.seq_length {}; both must be at least 1",
                            request.global_batch, request.sequence_length);
  constexpr size_t kMostGroups = 8;  // each halves the image and doubles the channels
  if (config.depths.empty() || config.depths.size() > kMostGroups)
    return invalid_argument("{}: {} groups of blocks; valid: 1 to {}", options.where("depths"), config.depths.size(),
                            kMostGroups);
  const std::vector<int64_t> fitting = divisors(request.global_batch, kMostSamples);
  config.samples = options.has("batch_norm_samples") ? options.get_int("batch_norm_samples") : fitting.back();
  if (request.global_batch % config.samples != 0)
    return invalid_argument("{}: {} samples do not divide the global batch of {}; valid: {}",
                            options.where("batch_norm_samples"), config.samples, request.global_batch,
                            fmt::join(divisors(request.global_batch, request.global_batch), ", "));
  return config;
}

}  // namespace altiplano::wide_resnet
