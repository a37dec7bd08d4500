#include "framework/graph/builder.hpp"

#include <cmath>

#include "framework/base/text.hpp"

namespace altiplano {

GraphBuilder::GraphBuilder(std::string model_name) {
  graph_.name = std::move(model_name);
}

void GraphBuilder::layer(const std::string& name) {
  layer_ = graph_.add_layer(name);
}

ValueId GraphBuilder::add_source(const std::string& name, Shape shape, DType dtype, Role role) {
  if (!status_.is_ok()) return {};
  if (!layer_.is_valid()) status_ = invalid_argument("'{}' belongs to no layer; open one first", name);
  if (graph_.find_value(name).is_valid()) status_ = invalid_argument("the name '{}' is taken", name);
  for (int64_t extent : shape)
    if (extent < 1) status_ = invalid_argument("'{}' of shape {}: extents must be at least 1", name, to_string(shape));
  if (is_too_large(shape))
    status_ =
        invalid_argument("'{}' of shape {}: a tensor has at most 2^48 elements; make the model or the batch smaller",
                         name, to_string(shape));
  return status_.is_ok() ? graph_.add_value(name, std::move(shape), dtype, role, layer_) : ValueId();
}

ValueId GraphBuilder::input(const std::string& name, Shape shape, DType dtype) {
  return add_source(name, std::move(shape), dtype, Role::kInput);
}

ValueId GraphBuilder::parameter(const std::string& name, Shape shape, Initializer init, bool decay) {
  ValueId value = add_source(name, std::move(shape), DType::kF32, Role::kParameter);
  if (value.is_valid()) graph_.add_parameter({value, init, true, decay});
  return value;
}

int GraphBuilder::freeze(const std::string& pattern) {
  int matched = 0;
  for (Parameter& parameter : graph_.parameters()) {
    if (!glob_match(pattern, graph_.value(parameter.value).name)) continue;
    parameter.trainable = false;
    ++matched;
  }
  return matched;
}

std::vector<ValueId> GraphBuilder::op(const std::string& kind, const std::string& name, std::vector<ValueId> inputs,
                                      Attributes attributes) {
  if (!status_.is_ok()) return {};
  auto outputs = graph_.add_op(kind, name, std::move(inputs), std::move(attributes), layer_, Phase::kForward);
  if (outputs.is_ok()) return std::move(outputs).value();
  status_ = outputs.status();
  return {};
}

ValueId GraphBuilder::op1(const std::string& kind, const std::string& name, std::vector<ValueId> inputs,
                          Attributes attributes) {
  auto outputs = op(kind, name, std::move(inputs), std::move(attributes));
  return outputs.empty() ? ValueId() : outputs[0];
}

ValueId GraphBuilder::matmul(const std::string& name, const std::string& equation, ValueId a, ValueId b) {
  return op1("matmul", name, {a, b}, {{"equation", equation}});
}

ValueId GraphBuilder::add(const std::string& name, ValueId a, ValueId b) {
  return op1("add", name, {a, b});
}

ValueId GraphBuilder::add_bias(const std::string& name, ValueId x, ValueId bias) {
  return op1("add_bias", name, {x, bias});
}

ValueId GraphBuilder::gelu(const std::string& name, ValueId x, const std::string& approximate) {
  return op1("gelu", name, {x}, {{"approximate", approximate}});
}

ValueId GraphBuilder::layer_norm(const std::string& name, ValueId x, ValueId weight, ValueId bias, double epsilon) {
  return op1("layer_norm", name, {x, weight, bias}, {{"epsilon", epsilon}});
}

ValueId GraphBuilder::dropout(const std::string& name, ValueId x, double p) {
  return p == 0 ? x : op1("dropout", name, {x}, {{"p", p}, {"stream", name}});
}

ValueId GraphBuilder::embedding(const std::string& name, ValueId table, ValueId ids) {
  return op1("embedding", name, {table, ids});
}

ValueId GraphBuilder::slice(const std::string& name, ValueId x, int64_t dim, int64_t start, int64_t length) {
  return op1("slice", name, {x}, {{"dim", dim}, {"start", start}, {"length", length}});
}

ValueId GraphBuilder::reshape(const std::string& name, ValueId x, Shape shape) {
  return op1("reshape", name, {x}, {{"shape", shape}});
}

ValueId GraphBuilder::attention(const std::string& name, ValueId q, ValueId k, ValueId v, double dropout,
                                ValueId document_start) {
  if (!status_.is_ok()) return {};
  const Shape& shape = graph_.value(q).shape;
  double scale = shape.empty() ? 1.0 : 1.0 / std::sqrt(static_cast<double>(shape.back()));
  Attributes attributes{{"scale", scale}, {"causal", int64_t{1}}, {"dropout", dropout}};
  if (dropout > 0) attributes.set("stream", name);
  std::vector<ValueId> inputs = {q, k, v};
  if (document_start.is_valid()) inputs.push_back(document_start);
  return op1("attention", name, std::move(inputs), attributes);
}

std::pair<ValueId, ValueId> GraphBuilder::cross_entropy(const std::string& name, ValueId logits, ValueId labels) {
  if (!status_.is_ok()) return {};
  Attributes origin{{"logits", graph_.value(logits).name}};
  ValueId max = op1("reduce_max", name + ".max", {logits}, {{"dims", std::vector<int64_t>{2}}});
  ValueId exp_sum = op1("exp_sum", name + ".exp_sum", {logits, max});
  ValueId picked = op1("pick", name + ".pick", {logits, labels});
  ValueId nll = op1("nll", name + ".nll", {max, exp_sum, picked, labels}, origin);
  ValueId sum = op1("reduce_sum", name + ".sum", {nll}, {{"dims", std::vector<int64_t>{0, 1}}, {"dtype", "f64"}});
  ValueId count = op1("count_valid", name + ".count", {labels});
  return {sum, count};
}

Result<ModelGraph> GraphBuilder::finish(std::vector<ValueId> inputs, ValueId loss_sum, ValueId token_count,
                                        ValueId logits) {
  if (!status_.is_ok()) return status_.with_context("while building model " + graph_.name);
  for (ValueId scalar : {loss_sum, token_count}) {
    Value& value = graph_.value(scalar);
    if (!value.shape.empty() || value.dtype != DType::kF64)
      return invalid_argument("model {}: '{}' must be an f64 scalar, it is {}{}", graph_.name, value.name,
                              to_string(value.dtype), to_string(value.shape));
    value.role = Role::kOutput;
  }
  ALTIPLANO_RETURN_IF_ERROR(graph_.verify());
  return ModelGraph{std::move(graph_), std::move(inputs), loss_sum, token_count, logits};
}

}  // namespace altiplano
