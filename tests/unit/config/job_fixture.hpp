#pragma once
// A model's records and a small job text shared by the tests of config/.
#include <map>
#include <string>
#include <vector>

#include "framework/config/job_config.hpp"

namespace altiplano::test {

inline std::vector<OptionRecord> gpt_like_records() {
  auto whole = [](const char* key, int64_t value, std::vector<std::string> aliases) {
    return OptionRecord{
        .key = key, .type = OptionType::kInt, .default_value = value, .minimum = 1, .aliases = std::move(aliases)};
  };
  return {whole("num_hidden_layers", 4, {"n_layer"}),
          whole("hidden_size", 128, {"n_embd"}),
          whole("num_attention_heads", 4, {"n_head"}),
          whole("max_position_embeddings", 128, {"n_positions"}),
          whole("vocab_size", 257, {}),
          {.key = "tie_word_embeddings", .type = OptionType::kBool, .default_value = true},
          {.key = "dropout",
           .type = OptionType::kFloat,
           .default_value = 0.0,
           .minimum = 0,
           .maximum = 1,
           .below_maximum = true}};
}

inline Result<std::vector<OptionRecord>> known_models(const std::string& kind, const std::vector<std::string>&) {
  if (kind == "gpt") return gpt_like_records();
  return invalid_argument("no model plugin {}; there is gpt", kind);
}

inline Result<JobConfig> load(const std::string& text, std::vector<std::string> overrides = {},
                              std::map<std::string, std::string> environment = {{"HOME", "/home/ada"}}) {
  JobSource source{.file = "job.yaml", .text = text, .overrides = std::move(overrides)};
  source.lookup = [environment](const std::string& name) -> std::optional<std::string> {
    auto at = environment.find(name);
    return at == environment.end() ? std::nullopt : std::optional<std::string>(at->second);
  };
  return load_job_config(source, known_models);
}

/// The least a job file says; tests append sections. Five lines.
inline const std::string kSmallest =
    "model: {kind: gpt}\n"
    "train:\n"
    "  max_steps: 10\n"
    "  seq_length: 16\n"
    "  global_batch_size: 8\n";

}  // namespace altiplano::test
