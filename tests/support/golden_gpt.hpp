#pragma once
// The training graph of tests/golden/gpt2_reference.json.
#include "tests/support/golden.hpp"
#include "tests/support/gpt.hpp"

namespace altiplano::test {

inline TrainingGraph golden_training(const GptReference& golden, DType dtype) {
  const auto& c = golden.config;
  Options options(gpt_plugin().option_records());
  auto set = [&](const char* key, OptionValue value) { BOOST_REQUIRE(options.set(key, std::move(value), {}).is_ok()); };
  for (const char* key : {"num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size",
                          "max_position_embeddings"})
    set(key, c.at(key).get<int64_t>());
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) set(key, 0.0);
  auto model =
      gpt_plugin().build(options, {c.at("global_batch_size").get<int64_t>(), c.at("sequence_length").get<int64_t>()});
  BOOST_REQUIRE_MESSAGE(model.is_ok(), model.status().to_string());
  OptimizerOptions optimizer{"adamw", c.at("beta1"), c.at("beta2"), c.at("epsilon"), c.at("weight_decay"), 0};
  auto training = make_training_graph(std::move(model).value(), dtype, optimizer, 0);
  BOOST_REQUIRE_MESSAGE(training.is_ok(), training.status().to_string());
  return std::move(training).value();
}

}  // namespace altiplano::test
