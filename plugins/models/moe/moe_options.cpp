#include "plugins/models/moe/moe_options.hpp"

#include <algorithm>
#include <cmath>

namespace altiplano::moe {
namespace {

constexpr double kChoices = 2;  // experts per token

OptionRecord record(std::string key, OptionType type, OptionValue default_value, std::string help, double least,
                    double most) {
  OptionRecord record;
  record.key = std::move(key);
  record.type = type;
  record.default_value = std::move(default_value);
  record.help = std::move(help);
  record.minimum = least;
  record.maximum = most;
  return record;
}

OptionRecord count(std::string key, int64_t default_value, double most, std::string help, double least = 1) {
  return record(std::move(key), OptionType::kInt, default_value, std::move(help), least, most);
}

Status check_heads(const Options& options, const MoeConfig& config) {
  if (config.hidden % config.heads == 0) return Status::ok();
  const int64_t below = config.hidden / config.heads * config.heads, above = below + config.heads;
  return invalid_argument("{}: {} is not a multiple of num_attention_heads {}; nearest: {}",
                          options.where("hidden_size"), config.hidden, config.heads,
                          below > 0 ? fmt::format("{}, {}", below, above) : fmt::format("{}", above));
}

}  // namespace

std::vector<OptionRecord> moe_option_records() {
  OptionRecord intermediate =
      count("intermediate_size", 1, 1 << 20, "Width of a feed-forward layer and of an expert; auto: 4 x hidden_size.");
  intermediate.default_value = std::monostate();
  intermediate.allow_auto = true;
  OptionRecord tied;
  tied.key = "tie_word_embeddings";
  tied.type = OptionType::kBool;
  tied.default_value = true;
  tied.help = "The head uses the token table as its weight.";
  return {
      count("num_hidden_layers", 8, 2048, "Number of transformer blocks."),
      count("hidden_size", 768, 1 << 18, "Width of the residual stream."),
      count("num_attention_heads", 16, 1 << 14, "Heads per block; divides hidden_size."),
      count("max_position_embeddings", 1024, 1 << 24, "Rows of the position table: the longest sequence."),
      count("vocab_size", 32000, 1 << 24, "Rows of the token table."),
      std::move(intermediate),
      count("num_local_experts", 8, 1 << 14, "Experts of a block that has them; each token goes to two.", 2),
      count("expert_interval", 2, 2048, "The first of this many blocks has experts, the others a feed-forward layer."),
      record(
          "capacity_factor", OptionType::kFloat, 1.0,
          "Room of an expert, as a multiple of its even share of a sample's tokens; what finds no room is passed by.",
          0.01, 1 << 14),
      std::move(tied),
      record("layer_norm_epsilon", OptionType::kFloat, 1e-5, "Added to the variance in layer norms.", 0, 1),
      record("initializer_range", OptionType::kFloat, 0.02, "Standard deviation of the initial weights.", 0, 1),
  };
}

Result<MoeConfig> moe_config(const Options& options, const ModelRequest& request) {
  MoeConfig config;
  config.layers = options.get_int("num_hidden_layers");
  config.hidden = options.get_int("hidden_size");
  config.heads = options.get_int("num_attention_heads");
  config.positions = options.get_int("max_position_embeddings");
  config.vocabulary = options.get_int("vocab_size");
  config.intermediate = options.has("intermediate_size") ? options.get_int("intermediate_size") : 4 * config.hidden;
  config.experts = options.get_int("num_local_experts");
  config.every = options.get_int("expert_interval");
  config.tied = options.get_bool("tie_word_embeddings");
  config.epsilon = options.get_float("layer_norm_epsilon");
  config.initializer_range = options.get_float("initializer_range");
  ALTIPLANO_RETURN_IF_ERROR(check_heads(options, config));
  config.head_size = config.hidden / config.heads;
  if (request.sequence_length < 1 || request.global_batch < 1)
    return invalid_argument("model/moe: a batch of {} sequences of {} tokens; both must be at least 1",
                            request.global_batch, request.sequence_length);
  if (request.sequence_length > config.positions)
    return invalid_argument(
        "{}: {} positions are too few for sequences of {} tokens; use at least {} or shorter sequences",
        options.where("max_position_embeddings"), config.positions, request.sequence_length, request.sequence_length);
  const double share = kChoices * static_cast<double>(request.sequence_length) / static_cast<double>(config.experts);
  const auto room = static_cast<int64_t>(std::ceil(options.get_float("capacity_factor") * share));
  config.capacity = std::clamp<int64_t>(room, 1, request.sequence_length);
  return config;
}

}  // namespace altiplano::moe
