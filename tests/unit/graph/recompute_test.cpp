#include "framework/graph/recompute.hpp"

#include <algorithm>

#include "tests/support/gpt.hpp"

namespace altiplano::test {

namespace {

const std::vector<std::string> kLayers = {"embedding", "block.0", "block.1", "head"};

std::set<std::string> chosen(const std::vector<std::string>& wanted) {
  auto layers = layers_to_recompute(make_gpt({}).graph, wanted);
  BOOST_REQUIRE_MESSAGE(layers.is_ok(), layers.status().to_string());
  return *layers;
}

/// Values that forward ops make and backward ops read, by the layer that made them.
std::map<std::string, std::set<std::string>> kept_for_backward(const Graph& graph) {
  std::map<std::string, std::set<std::string>> kept;
  for (const Op& op : graph.ops()) {
    if (op.phase != Phase::kBackward) continue;
    for (ValueId id : op.inputs) {
      const Value& value = graph.value(id);
      if (value.producer.is_valid() && graph.op(value.producer).phase == Phase::kForward)
        kept[graph.layer_name(value.layer)].insert(value.name);
    }
  }
  return kept;
}

std::set<std::string> copies(const Graph& graph) {
  std::set<std::string> names;
  for (const Op& op : graph.ops())
    if (op.name.ends_with(".again")) names.insert(op.name);
  return names;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(recompute_of_layers)

BOOST_AUTO_TEST_CASE(layers_are_named_by_globs_or_as_full) {
  BOOST_TEST(chosen({}).empty());
  BOOST_TEST((chosen({"full"}) == std::set<std::string>{"embedding", "block.0", "block.1"}));
  BOOST_TEST((chosen({"block.*"}) == std::set<std::string>{"block.0", "block.1"}));
  BOOST_TEST((chosen({"block.1", "head", "block.1"}) == std::set<std::string>{"block.1", "head"}));
  const auto refused = layers_to_recompute(make_gpt({}).graph, {"block.7"});
  BOOST_TEST(refused.status().to_string() ==
             "parallel.recompute: no layer is named 'block.7'; valid: none, auto, full, or layers: embedding, block.0, "
             "block.1, head");
}

BOOST_AUTO_TEST_CASE(a_layer_keeps_only_what_others_read) {
  for (bool fused : {false, true}) {
    const TrainingGraph whole = make_gpt_training({.dropout = 0.1}, DType::kF32, {}, 7, fused);
    const TrainingGraph again = make_gpt_training({.dropout = 0.1}, DType::kF32, {}, 7, fused, true);
    BOOST_TEST(again.graph.verify().is_ok());
    BOOST_TEST(
        (again.recomputed == std::set<std::string>{"block.0", "block.1"}));  // of the embedding, nothing is needed
    auto before = kept_for_backward(whole.graph), after = kept_for_backward(again.graph);
    BOOST_TEST(before["block.0"].size() > 5u);
    BOOST_TEST(after["block.0"].size() == 1u);  // the residual stream, which block.1 reads
    BOOST_TEST((before["head"] == after["head"]));
    BOOST_TEST(again.fingerprint == whole.fingerprint);
  }
}

BOOST_AUTO_TEST_CASE(copies_come_right_before_the_layers_backward_and_draw_the_same_numbers) {
  const TrainingGraph again = make_gpt_training({.dropout = 0.1}, DType::kF32, {}, 7, true, true);
  const Graph& graph = again.graph;
  std::set<LayerId> differentiated;
  for (const Op& op : graph.ops()) {
    if (op.phase != Phase::kBackward) continue;
    if (!op.name.ends_with(".again")) {
      differentiated.insert(op.layer);
      continue;
    }
    BOOST_TEST(!differentiated.contains(op.layer), op.name);
    const std::string original = op.name.substr(0, op.name.size() - 6);
    const auto found = std::ranges::find(graph.ops(), original, &Op::name);
    BOOST_REQUIRE(found != graph.ops().end());
    BOOST_TEST((found->kind == op.kind && found->attributes == op.attributes && found->phase == Phase::kForward));
  }
}

BOOST_AUTO_TEST_CASE(without_layers_nothing_changes) {
  BOOST_TEST(copies(make_gpt_training({}, DType::kF32).graph).empty());
  TrainingGraph training = make_gpt_training({}, DType::kF32);
  const std::string before = training.graph.to_string();
  BOOST_TEST(recompute(training, {}).is_ok());
  BOOST_TEST(training.graph.to_string() == before);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
