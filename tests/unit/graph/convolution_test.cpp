// Shapes, FLOPs, bytes and rules of convolution, pooling and batch norm beside figures worked out by hand.
#include <boost/test/unit_test.hpp>

#include "framework/cost/op_work.hpp"
#include "framework/graph/builder.hpp"
#include "framework/graph/samples_together.hpp"
#include "framework/sharding/rule.hpp"

using namespace altiplano;

namespace {

const OpDefinition& definition(const std::string& kind) {
  return OpTable::instance().get(kind);
}

std::vector<ValueType> types(const std::vector<Shape>& shapes, DType dtype = DType::kF32) {
  std::vector<ValueType> types;
  for (const Shape& shape : shapes) types.push_back({shape, dtype});
  return types;
}

std::vector<ValueType> inferred(const std::string& kind, const std::vector<ValueType>& inputs,
                                const Attributes& attributes) {
  auto outputs = definition(kind).infer(inputs, attributes);
  BOOST_REQUIRE_MESSAGE(outputs.is_ok(), outputs.status().to_string());
  return std::move(outputs).value();
}

std::string refusal(const std::string& kind, const std::vector<Shape>& inputs, const Attributes& attributes) {
  return definition(kind).infer(types(inputs), attributes).status().message();
}

std::string rule_text(const std::string& kind, const std::vector<ValueType>& inputs, const Attributes& attributes) {
  const auto outputs = inferred(kind, inputs, attributes);
  auto rule = ShardingRule::parse(definition(kind).rule(inputs, outputs, attributes), inputs, outputs);
  BOOST_REQUIRE_MESSAGE(rule.is_ok(), rule.status().to_string());
  return rule->to_string();
}

const Attributes kStem{{"stride", int64_t{2}}, {"padding", int64_t{3}}};
const std::vector<Shape> kStemShapes = {{2, 224, 224, 3}, {7, 7, 3, 64}};

}  // namespace

BOOST_AUTO_TEST_CASE(the_stem_of_a_resnet_has_the_shape_flops_and_bytes_of_its_paper) {
  const auto inputs = types(kStemShapes);
  const auto outputs = inferred("conv2d", inputs, kStem);
  BOOST_TEST(to_string(outputs[0].shape) == "[2,112,112,64]");
  const OpWork work = op_work("conv2d", kStem, inputs, outputs);
  BOOST_TEST(work.flops.value == 2.0 * 2 * 112 * 112 * 64 * 7 * 7 * 3);
  BOOST_TEST(work.bytes.value == 4 * (2 * 224 * 224 * 3 + 7 * 7 * 3 * 64 + 2 * 112 * 112 * 64));
  BOOST_TEST(work.smallest_dim == 0);  // no product of matrices
  BOOST_TEST(rule_text("conv2d", inputs, kStem) == "[n,y,x,c] [p,q,c,o] -> [n,u,v,o]  sum: c  whole: y,x,p,q,u,v");
}

BOOST_AUTO_TEST_CASE(gradients_of_a_convolution_cost_what_it_does_and_sum_over_what_it_splits) {
  const auto image = types(kStemShapes), dz = types({{2, 112, 112, 64}});
  Attributes of_input = kStem, of_weight = kStem;
  of_input.set("height", int64_t{224}), of_input.set("width", int64_t{224});
  of_weight.set("rows", int64_t{7}), of_weight.set("columns", int64_t{7});
  const std::vector<ValueType> to_input = {dz[0], image[1]}, to_weight = {dz[0], image[0]};
  const double flops = definition("conv2d").flops(image, dz, kStem);
  const auto dx = inferred("conv2d_grad_input", to_input, of_input);
  const auto dw = inferred("conv2d_grad_weight", to_weight, of_weight);
  BOOST_TEST(to_string(dx[0].shape) == "[2,224,224,3]");
  BOOST_TEST(to_string(dw[0].shape) == "[7,7,3,64]");
  BOOST_TEST(definition("conv2d_grad_input").flops(to_input, dx, of_input) == flops);
  BOOST_TEST(definition("conv2d_grad_weight").flops(to_weight, dw, of_weight) == flops);
  BOOST_TEST(rule_text("conv2d_grad_input", to_input, of_input) ==
             "[n,u,v,o] [p,q,c,o] -> [n,y,x,c]  sum: o  whole: u,v,p,q,y,x");
  BOOST_TEST(rule_text("conv2d_grad_weight", to_weight, of_weight) ==
             "[n,u,v,o] [n,y,x,c] -> [p,q,c,o]  sum: n  whole: u,v,y,x,p,q");
  const auto in_bf16 = inferred("conv2d_grad_weight", types({dz[0].shape, image[0].shape}, DType::kBF16), of_weight);
  BOOST_TEST((in_bf16[0].dtype == DType::kF32));  // gradients of parameters are accumulated
}

BOOST_AUTO_TEST_CASE(wrong_images_filters_and_windows_are_refused_with_the_numbers) {
  BOOST_TEST(refusal("conv2d", {{2, 8, 8, 3}, {3, 3, 4, 5}}, {}) == "the filter takes 4 channels, the image has 3");
  BOOST_TEST(refusal("conv2d", {{2, 8, 8, 3}, {9, 3, 3, 5}}, {}) ==
             "a window of 9 x 3 does not fit into an image of 8 x 8 with padding 0");
  BOOST_TEST(refusal("conv2d", {{2, 8, 8, 3}, {3, 3, 3, 5}}, {{"stride", int64_t{0}}}) ==
             "stride is 0; it must be at least 1");
  BOOST_TEST(refusal("max_pool", {{2, 8, 8, 3}}, {{"window", int64_t{2}}, {"padding", int64_t{2}}}) ==
             "padding 2 is not less than the window 2");
  BOOST_TEST(refusal("batch_moments", {{2, 8, 8, 3}}, {}) == "samples is 0; statistics are over at least one sample");
  BOOST_TEST(refusal("conv2d", {{2, 8, 3}, {3, 3, 3, 5}}, {}) ==
             "the image [n,y,x,c] must have 4 dims, got 3 of shape [2,8,3]");
}

BOOST_AUTO_TEST_CASE(pooling_keeps_samples_and_channels_apart) {
  const Attributes window{{"window", int64_t{3}}, {"stride", int64_t{2}}, {"padding", int64_t{1}}};
  const auto image = types({{2, 112, 112, 64}});
  const auto pooled = inferred("max_pool", image, window);
  BOOST_TEST(to_string(pooled[0].shape) == "[2,56,56,64]");
  BOOST_TEST(definition("max_pool").flops(image, pooled, window) == 9.0 * 2 * 56 * 56 * 64);
  BOOST_TEST(rule_text("max_pool", image, window) == "[n,y,x,c] -> [n,u,v,c]  whole: y,x,u,v");
  BOOST_TEST(to_string(inferred("mean_pool", image, {})[0].shape) == "[2,64]");
  BOOST_TEST(rule_text("mean_pool", image, {}) == "[n,y,x,c] -> [n,c]  whole: y,x");
}

BOOST_AUTO_TEST_CASE(statistics_of_replicas_are_partial_sums_and_normalizing_needs_them_whole) {
  const Attributes samples{{"samples", int64_t{8}}};
  const auto image = types({{8, 4, 4, 6}});
  BOOST_TEST(rule_text("batch_moments", image, samples) == "[n,y,x,c] -> [c] [c]  sum: n,y,x");
  BOOST_TEST(rule_text("batch_norm", types({{8, 4, 4, 6}, {6}, {6}, {6}, {6}}), samples) ==
             "[n,y,x,c] [c] [c] [c] [c] -> [n,y,x,c]");
  const auto rule = ShardingRule::parse("[n,y,x,c] -> [c] [c]  sum: n,y,x", image, types({{6}, {6}}));
  const MeshShape mesh{{{Axis::kData, 2}}};
  const auto strategy = parse_strategy("data:n", *rule, mesh);
  BOOST_REQUIRE(strategy.is_ok());
  BOOST_TEST(strategy->outputs[0].to_string() == "[-] sum{data}");
}

BOOST_AUTO_TEST_CASE(a_graph_takes_one_number_of_samples_together) {
  GraphBuilder b("images");
  b.layer("all");
  const ValueId x = b.input("images", {8, 4, 4, 3}, DType::kF32);
  BOOST_TEST(samples_together(b.graph()).value() == 0);
  b.op("batch_moments", "first", {x}, {{"samples", int64_t{4}}});
  BOOST_TEST(samples_together(b.graph()).value() == 4);
  b.op("batch_moments", "second", {x}, {{"samples", int64_t{2}}});
  BOOST_TEST(samples_together(b.graph()).status().message() ==
             "op first takes 4 samples together, op second 2; all ops of a model take the same number");
}
