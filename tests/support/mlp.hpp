#pragma once
// Multilayer perceptrons and attention as the golden results of Alpa's prototype have them: x -> products with an
// activation between, squared error against y, gradients by hand (that loss is no op), one layer label per product.
#include <boost/test/unit_test.hpp>

#include "framework/graph/training_graph.hpp"

namespace altiplano::test {

struct MlpShape {
  int64_t layers = 2, batch = 1024, hidden = 128;
  bool bias = false;
};

/// Contributions of every parameter and nothing of the update.
inline TrainingGraph make_mlp(const MlpShape& shape) {
  TrainingGraph training;
  Graph& graph = training.graph;
  graph.name = "mlp";
  std::vector<LayerId> layers;
  for (int64_t l = 0; l < shape.layers; ++l) layers.push_back(graph.add_layer(fmt::format("dense.{}", l)));
  auto op = [&](const std::string& kind, const std::string& name, std::vector<ValueId> inputs, Attributes attributes,
                LayerId layer, Phase phase) {
    auto outputs = graph.add_op(kind, name, std::move(inputs), std::move(attributes), layer, phase);
    BOOST_REQUIRE_MESSAGE(outputs.is_ok(), outputs.status().to_string());
    return (*outputs)[0];
  };
  const DType f32 = DType::kF32;
  const ValueId x = graph.add_value("x", {shape.batch, shape.hidden}, f32, Role::kInput, layers.front());
  const ValueId y = graph.add_value("y", {shape.batch, shape.hidden}, f32, Role::kInput, layers.back());
  training.inputs = {x, y};
  std::vector<ValueId> weights, biases, inputs = {x}, before;
  for (size_t l = 0; l < layers.size(); ++l) {
    weights.push_back(
        graph.add_value(fmt::format("w{}", l), {shape.hidden, shape.hidden}, f32, Role::kParameter, layers[l]));
    graph.add_parameter({weights[l], {}, true, true});
    if (shape.bias) {
      biases.push_back(graph.add_value(fmt::format("b{}", l), {shape.hidden}, f32, Role::kParameter, layers[l]));
      graph.add_parameter({biases[l], {}, true, true});
    }
    ValueId h = op("matmul", fmt::format("product{}", l), {inputs[l], weights[l]},
                   {{"equation", std::string("[b,i] [i,o] -> [b,o]")}}, layers[l], Phase::kForward);
    if (shape.bias) h = op("add_bias", fmt::format("biased{}", l), {h, biases[l]}, {}, layers[l], Phase::kForward);
    before.push_back(h);
    if (l + 1 < layers.size()) h = op("gelu", fmt::format("act{}", l), {h}, {}, layers[l], Phase::kForward);
    inputs.push_back(h);
  }
  const ValueId minus = op("scale", "minus_y", {y}, {{"factor", -1.0}}, layers.back(), Phase::kForward);
  ValueId d = op("add", "error", {inputs.back(), minus}, {}, layers.back(), Phase::kBackward);
  for (size_t l = layers.size(); l-- > 0;) {
    if (l + 1 < layers.size())
      d = op("gelu_grad", fmt::format("dact{}", l), {before[l], d}, {}, layers[l], Phase::kBackward);
    ParameterTraining weight;
    weight.parameter = weights[l];
    weight.contributions = {op("matmul", fmt::format("dw{}", l), {inputs[l], d},
                               {{"equation", std::string("[b,i] [b,o] -> [i,o]")}}, layers[l], Phase::kBackward)};
    training.parameters.push_back(weight);
    if (shape.bias) {
      ParameterTraining bias;
      bias.parameter = biases[l];
      bias.contributions = {op("reduce_sum", fmt::format("db{}", l), {d}, {{"dims", std::vector<int64_t>{0}}},
                               layers[l], Phase::kBackward)};
      training.parameters.push_back(bias);
    }
    if (l > 0)
      d = op("matmul", fmt::format("dx{}", l), {d, weights[l]}, {{"equation", std::string("[b,o] [i,o] -> [b,i]")}},
             layers[l], Phase::kBackward);
  }
  return training;
}

}  // namespace altiplano::test
