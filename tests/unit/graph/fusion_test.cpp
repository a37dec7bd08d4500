#include "framework/graph/fusion.hpp"

#include <algorithm>

#include "framework/graph/builder.hpp"
#include "tests/support/gpt.hpp"

namespace altiplano::test {

namespace {

const std::set<std::string> kAll = {"bias_gelu", "residual_add", "packed_attention"};

int64_t count(const Graph& graph, const std::string& kind) {
  return std::ranges::count(graph.ops(), kind, &Op::kind);
}

Graph fused(const ModelGraph& model, const std::set<std::string>& kinds = kAll) {
  auto out = fuse(model, kinds);
  BOOST_REQUIRE_MESSAGE(out.is_ok(), out.status().to_string());
  BOOST_TEST(out->graph.verify().is_ok());
  return std::move(out->graph);
}

/// x -> a branch -> loss, in one layer.
template <typename Write>
ModelGraph branch(Write write) {
  GraphBuilder b("case");
  b.layer("one");
  const ValueId x = b.parameter("x", {2, 4}, {Initializer::Kind::kNormal, 0, 1}),
                bias = b.parameter("bias", {4}, {Initializer::Kind::kNormal, 0, 1});
  const ValueId out = write(b, x, bias);
  const std::vector<int64_t> dims = {0, 1};
  const ValueId loss = b.op1("reduce_sum", "loss", {out}, {{"dims", dims}, {"dtype", "f64"}});
  const ValueId labels = b.input("labels", {2, 3}, DType::kI32);
  const ValueId tokens = b.op1("count_valid", "count", {labels});
  auto model = b.finish({labels}, loss, tokens, out);
  BOOST_REQUIRE_MESSAGE(model.is_ok(), model.status().to_string());
  return std::move(model).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_gpt_loses_the_passes_that_only_hand_on) {
  for (double dropout : {0.0, 0.1}) {
    for (bool packed : {false, true}) {
      GptShape shape;
      shape.dropout = dropout;
      shape.packed = packed;
      const ModelGraph model = make_gpt(shape);
      const Graph graph = fused(model);
      BOOST_TEST(count(graph, "bias_gelu") == shape.layers);
      BOOST_TEST(count(graph, "residual_add") == 2 * shape.layers);
      BOOST_TEST(count(graph, "packed_attention") == shape.layers);
      for (const char* kind : {"gelu", "attention", "reshape"}) BOOST_TEST(count(graph, kind) == 0, kind);
      BOOST_TEST(count(graph, "add_bias") == shape.layers + (packed ? 0 : 1));  // of q, k, v; the positions
      BOOST_TEST(graph.parameters().size() == model.graph.parameters().size());
      BOOST_TEST(graph.find_value("block.1.residual2").is_valid());
    }
  }
}

BOOST_AUTO_TEST_CASE(only_kinds_that_the_device_has_are_used) {
  const ModelGraph model = make_gpt({});
  BOOST_TEST(fused(model, {}).to_string() == model.graph.to_string());
  const Graph graph = fused(model, {"bias_gelu"});
  BOOST_TEST(count(graph, "bias_gelu") == 2);
  BOOST_TEST(count(graph, "attention") == 2);
  BOOST_TEST(count(graph, "residual_add") == 0);
}

BOOST_AUTO_TEST_CASE(a_value_that_somebody_else_reads_stays) {
  const ModelGraph twice = branch([](GraphBuilder& b, ValueId x, ValueId bias) {
    const ValueId biased = b.add_bias("biased", x, bias);
    return b.add("sum", b.gelu("active", biased), biased);
  });
  const Graph graph = fused(twice);
  BOOST_TEST(count(graph, "bias_gelu") == 0);
  BOOST_TEST(count(graph, "residual_add") == 0);
  BOOST_TEST(graph.to_string() == twice.graph.to_string());
}

BOOST_AUTO_TEST_CASE(the_residual_may_be_either_operand) {
  for (bool first : {false, true}) {
    const Graph graph = fused(branch([&](GraphBuilder& b, ValueId x, ValueId bias) {
      const ValueId biased = b.dropout("dropped", b.add_bias("biased", b.gelu("active", x), bias), 0.2);
      return first ? b.add("sum", biased, x) : b.add("sum", x, biased);
    }));
    BOOST_TEST(count(graph, "residual_add") == 1);
    BOOST_TEST(count(graph, "dropout") == 0);
    BOOST_TEST(count(graph, "add_bias") == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_plan_is_for_the_model_not_for_what_was_fused) {
  const GptShape shape;
  BOOST_TEST(make_gpt_training(shape, DType::kF32, {}, 7, true).fingerprint ==
             make_gpt_training(shape, DType::kF32, {}, 7, false).fingerprint);
  GptShape other;
  other.hidden = 16;
  BOOST_TEST(make_gpt_training(other, DType::kF32).fingerprint != make_gpt_training(shape, DType::kF32).fingerprint);
  BOOST_TEST(make_gpt_training(shape, DType::kF64).fingerprint != make_gpt_training(shape, DType::kF32).fingerprint);
}

}  // namespace altiplano::test
