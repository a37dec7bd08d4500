#include <set>

#include "framework/sharding/rule.hpp"
#include "tests/support/gpt.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

size_t count_kind(const Graph& graph, const std::string& kind, Phase phase) {
  size_t n = 0;
  for (const Op& op : graph.ops()) n += op.kind == kind && op.phase == phase;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_op_of_a_training_graph_has_a_sharding_rule_that_parses) {
  TrainingGraph training = make_gpt_training({.dropout = 0.1}, DType::kBF16);
  for (const Op& op : training.graph.ops()) {
    auto rule = rule_of(training.graph, op);
    BOOST_CHECK_MESSAGE(rule.is_ok(), op.name << ": " << rule.status().to_string());
  }
}

BOOST_AUTO_TEST_CASE(blocks_share_one_signature_and_the_ends_have_their_own) {
  TrainingGraph training = make_gpt_training({.layers = 4, .dropout = 0.1}, DType::kF32);
  auto signatures = layer_signatures(training.graph);
  BOOST_REQUIRE_EQUAL(signatures.size(), 6u);
  for (size_t i = 2; i <= 4; ++i) BOOST_CHECK_EQUAL(signatures[i], signatures[1]);
  BOOST_CHECK_EQUAL(std::set<uint64_t>(signatures.begin(), signatures.end()).size(), 3u);
}

BOOST_AUTO_TEST_CASE(a_tied_table_has_contributions_of_head_and_embedding_that_are_not_added) {
  TrainingGraph training = make_gpt_training({});
  const Graph& graph = training.graph;
  const ParameterTraining& table = training.parameters.front();
  BOOST_REQUIRE_EQUAL(graph.value(table.parameter).name, "embedding.token.weight");
  BOOST_REQUIRE_EQUAL(table.contributions.size(), 2u);
  BOOST_CHECK_EQUAL(graph.layer_name(graph.value(table.contributions[0]).layer), "head");
  BOOST_CHECK_EQUAL(graph.layer_name(graph.value(table.contributions[1]).layer), "embedding");
  BOOST_CHECK(!graph.value(table.gradient).producer.is_valid());
  BOOST_CHECK_EQUAL(make_gpt_training({.tied = false}).parameters.front().contributions.size(), 1u);
}

BOOST_AUTO_TEST_CASE(under_bf16_parameters_take_f32_gradients_and_activations_stay_bf16) {
  TrainingGraph training = make_gpt_training({}, DType::kBF16);
  const Graph& graph = training.graph;
  for (const ParameterTraining& entry : training.parameters) {
    BOOST_CHECK(graph.value(entry.parameter).dtype == DType::kBF16);
    for (ValueId id : entry.contributions)
      BOOST_CHECK_MESSAGE(graph.value(id).dtype == DType::kF32, graph.value(id).name);
    BOOST_CHECK_EQUAL(graph.value(entry.states.back()).name, graph.value(entry.parameter).name + ".master");
    BOOST_CHECK_EQUAL(entry.states.size(), 3u);
    BOOST_CHECK(graph.value(entry.updated).dtype == DType::kBF16);
  }
  BOOST_CHECK_EQUAL(count_kind(graph, "cast", Phase::kBackward), 0u);
  BOOST_CHECK_EQUAL(count_kind(graph, "cast", Phase::kUpdate), training.parameters.size());
  BOOST_CHECK(graph.value(graph.find_value("block.0.ln1.1")).dtype == DType::kF32);
  BOOST_CHECK(graph.value(graph.find_value("block.0.mlp.gelu.grad.x")).dtype == DType::kBF16);
}

BOOST_AUTO_TEST_CASE(in_f32_the_update_works_on_the_parameter_itself) {
  TrainingGraph training = make_gpt_training({}, DType::kF32, {.name = "sgd", .momentum = 0.9});
  for (const ParameterTraining& entry : training.parameters) {
    BOOST_CHECK_EQUAL(entry.states.size(), 1u);
    BOOST_REQUIRE_EQUAL(entry.update_ops.size(), 1u);
    BOOST_CHECK(training.graph.op(entry.update_ops[0]).inputs[0] == entry.parameter);
  }
}

BOOST_AUTO_TEST_CASE(biases_and_norms_do_not_decay) {
  TrainingGraph training = make_gpt_training({});
  for (const ParameterTraining& entry : training.parameters) {
    const Op& update = training.graph.op(entry.update_ops[0]);
    const std::string& name = training.graph.value(entry.parameter).name;
    bool is_plain = name.ends_with(".bias") || name.find(".ln") != std::string::npos;
    BOOST_CHECK_EQUAL(update.attributes.get_float("weight_decay", -1), is_plain ? 0.0 : 0.1);
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_computed_for_frozen_parameters) {
  TrainingGraph all = make_gpt_training({});
  TrainingGraph some = make_gpt_training({.tied = false, .frozen = {"embedding.*", "block.0.*"}});
  BOOST_CHECK_LT(some.parameters.size(), all.parameters.size());
  for (const Op& op : some.graph.ops())
    if (op.phase != Phase::kForward) BOOST_CHECK_MESSAGE(some.graph.layer_name(op.layer) != "block.0", op.name);
  BOOST_CHECK_EQUAL(count_kind(some.graph, "embedding_grad", Phase::kBackward), 0u);
}

BOOST_AUTO_TEST_CASE(a_hidden_size_that_heads_do_not_divide_is_refused_with_the_nearest_ones) {
  auto model = gpt_plugin().build(gpt_options({.hidden = 50, .heads = 12}), {1, 4});
  BOOST_REQUIRE(!model.is_ok());
  BOOST_CHECK_EQUAL(model.status().message(),
                    "hidden_size: 50 is not a multiple of num_attention_heads 12; nearest: 48, 60");
}

BOOST_AUTO_TEST_CASE(a_sequence_longer_than_the_positions_is_refused) {
  auto model = gpt_plugin().build(gpt_options({.sequence = 4}), {1, 9});
  BOOST_REQUIRE(!model.is_ok());
  BOOST_CHECK_EQUAL(model.status().message(),
                    "max_position_embeddings: 4 positions are too few for sequences of 9 tokens; use at least 9 or "
                    "shorter sequences");
}

BOOST_AUTO_TEST_CASE(a_frozen_glob_that_matches_nothing_is_refused) {
  auto model = gpt_plugin().build(gpt_options({.frozen = {"blocks.*"}}), {1, 4});
  BOOST_REQUIRE(!model.is_ok());
  BOOST_CHECK_NE(model.status().message().find("'blocks.*' matches no parameter"), std::string::npos);
}
