#pragma once
// A GPT through its plugin, as tests want it: small, named numbers, any precision.
#include <boost/test/unit_test.hpp>
#include <string>

#include "framework/graph/training_graph.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano::test {

struct GptShape {
  int64_t layers = 2, hidden = 8, heads = 2, vocabulary = 11, batch = 3, sequence = 4;
  double dropout = 0;
  bool tied = true;
  std::string activation = "gelu_new";
  std::vector<std::string> frozen = {};
  bool packed = false;             ///< documents are told apart, and
  bool restarts_positions = true;  ///< positions count from their starts
};

inline const Model& gpt_plugin() {
  auto& registry = PluginRegistry::instance();
  static const bool once = (registry.add_search_path(ALTIPLANO_TEST_PLUGIN_DIR), true);
  (void)once;
  auto model = registry.model("gpt");
  BOOST_REQUIRE_MESSAGE(model.is_ok(), model.status().to_string());
  return **model;
}

inline Options gpt_options(const GptShape& shape) {
  Options options(gpt_plugin().option_records());
  auto set = [&](const char* key, OptionValue value) {
    Status status = options.set(key, std::move(value), {});
    BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  };
  set("num_hidden_layers", shape.layers);
  set("hidden_size", shape.hidden);
  set("num_attention_heads", shape.heads);
  set("max_position_embeddings", shape.sequence);
  set("vocab_size", shape.vocabulary);
  set("tie_word_embeddings", shape.tied);
  set("activation_function", shape.activation);
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) set(key, shape.dropout);
  if (!shape.frozen.empty()) set("frozen", shape.frozen);
  return options;
}

inline ModelGraph make_gpt(const GptShape& shape) {
  auto model = gpt_plugin().build(
      gpt_options(shape), {shape.batch, shape.sequence, shape.packed, shape.packed && shape.restarts_positions});
  BOOST_REQUIRE_MESSAGE(model.is_ok(), model.status().to_string());
  return std::move(model).value();
}

inline TrainingGraph make_gpt_training(const GptShape& shape, DType dtype = DType::kF64,
                                       const OptimizerOptions& optimizer = {}, uint64_t seed = 7, bool fused = false,
                                       bool recompute = false) {
  static const std::set<std::string> kinds = {"bias_gelu", "residual_add", "packed_attention"};
  ModelGraph model = make_gpt(shape);
  std::set<std::string> recomputed;
  if (recompute) recomputed.insert(model.graph.layers().begin(), std::prev(model.graph.layers().end()));
  auto training = make_training_graph(std::move(model), dtype, optimizer, seed, fused ? kinds : std::set<std::string>(),
                                      recomputed);
  BOOST_REQUIRE_MESSAGE(training.is_ok(), training.status().to_string());
  return std::move(training).value();
}

}  // namespace altiplano::test
