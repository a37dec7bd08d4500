#include "plugins/models/gpt/gpt_options.hpp"

namespace altiplano::gpt {
namespace {

OptionRecord record(std::string key, OptionType type, OptionValue default_value, std::string help) {
  OptionRecord record;
  record.key = std::move(key);
  record.type = type;
  record.default_value = std::move(default_value);
  record.help = std::move(help);
  return record;
}

/// `alias`: the name in GPT-2's own configuration files. `most`: far above any model's, so that a mistyped number is
/// refused at once and products stay within 64 bits.
OptionRecord count(std::string key, int64_t default_value, double most, std::string help, std::string alias = {}) {
  OptionRecord r = record(std::move(key), OptionType::kInt, default_value, std::move(help));
  r.minimum = 1;
  r.maximum = most;
  if (!alias.empty()) r.aliases = {std::move(alias)};
  return r;
}

OptionRecord probability(std::string key, std::string help) {
  OptionRecord r = record(std::move(key), OptionType::kFloat, 0.1, std::move(help));
  r.minimum = 0;
  r.maximum = 0.999;
  return r;
}

OptionRecord positive(std::string key, double default_value, std::string help) {
  OptionRecord r = record(std::move(key), OptionType::kFloat, default_value, std::move(help));
  r.minimum = 0;
  r.maximum = 1;
  return r;
}

Status check_heads(const Options& options, int64_t hidden, int64_t heads) {
  if (hidden % heads == 0) return Status::ok();
  int64_t below = hidden / heads * heads, above = below + heads;
  return invalid_argument("{}: {} is not a multiple of num_attention_heads {}; nearest: {}",
                          options.where("hidden_size"), hidden, heads,
                          below > 0 ? fmt::format("{}, {}", below, above) : fmt::format("{}", above));
}

}  // namespace

std::vector<OptionRecord> gpt_option_records() {
  OptionRecord intermediate =
      count("intermediate_size", 1, 1 << 20, "Width of the feed-forward layer; auto: 4 x hidden_size.", "n_inner");
  intermediate.default_value = std::monostate();
  intermediate.allow_auto = true;
  OptionRecord activation =
      record("activation_function", OptionType::kString, std::string("gelu_new"),
             "Activation of the feed-forward layer: gelu_new is the tanh form, gelu the erf form.");
  activation.choices = {"gelu_new", "gelu"};
  return {
      count("num_hidden_layers", 12, 2048, "Number of transformer blocks.", "n_layer"),
      count("hidden_size", 768, 1 << 18, "Width of the residual stream.", "n_embd"),
      count("num_attention_heads", 12, 1 << 14, "Heads per block; divides hidden_size.", "n_head"),
      count("max_position_embeddings", 1024, 1 << 24, "Rows of the position table: the longest sequence.",
            "n_positions"),
      count("vocab_size", 50257, 1 << 24, "Rows of the token table."),
      record("tie_word_embeddings", OptionType::kBool, true, "The head uses the token table as its weight."),
      std::move(intermediate),
      std::move(activation),
      positive("layer_norm_epsilon", 1e-5, "Added to the variance in layer norms."),
      probability("resid_pdrop", "Dropout probability of what is added to the residual stream."),
      probability("embd_pdrop", "Dropout probability of the embeddings."),
      probability("attn_pdrop", "Dropout probability of the attention probabilities."),
      positive("initializer_range", 0.02, "Standard deviation of the initial weights."),
      record("frozen", OptionType::kStringList, std::vector<std::string>{},
             "Globs over parameter names that are not trained."),
  };
}

Result<GptConfig> gpt_config(const Options& options, const ModelRequest& request) {
  GptConfig config;
  config.layers = options.get_int("num_hidden_layers");
  config.hidden = options.get_int("hidden_size");
  config.heads = options.get_int("num_attention_heads");
  config.positions = options.get_int("max_position_embeddings");
  config.vocabulary = options.get_int("vocab_size");
  config.tied = options.get_bool("tie_word_embeddings");
  config.intermediate = options.has("intermediate_size") ? options.get_int("intermediate_size") : 4 * config.hidden;
  config.epsilon = options.get_float("layer_norm_epsilon");
  config.gelu_form = options.get_string("activation_function") == "gelu" ? "erf" : "tanh";
  config.residual_dropout = options.get_float("resid_pdrop");
  config.embedding_dropout = options.get_float("embd_pdrop");
  config.attention_dropout = options.get_float("attn_pdrop");
  config.initializer_range = options.get_float("initializer_range");
  const auto& frozen = options.get_strings("frozen");
  for (size_t i = 0; i < frozen.size(); ++i) config.frozen.emplace_back(frozen[i], options.where("frozen", i));
  ALTIPLANO_RETURN_IF_ERROR(check_heads(options, config.hidden, config.heads));
  config.head_size = config.hidden / config.heads;
  if (request.sequence_length > config.positions)
    return invalid_argument(
        "{}: {} positions are too few for sequences of {} tokens; use at least {} or shorter sequences",
        options.where("max_position_embeddings"), config.positions, request.sequence_length, request.sequence_length);
  if (request.sequence_length < 1 || request.global_batch < 1)
    return invalid_argument("model/gpt: a batch of {} sequences of {} tokens; both must be at least 1",
                            request.global_batch, request.sequence_length);
  return config;
}

}  // namespace altiplano::gpt
