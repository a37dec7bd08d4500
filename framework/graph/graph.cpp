#include "framework/graph/graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/base/random.hpp"
#include "framework/base/text.hpp"
#include "framework/graph/op_definition.hpp"

namespace altiplano {

const char* to_string(Role role) {
  switch (role) {
    case Role::kInput:
      return "input";
    case Role::kParameter:
      return "parameter";
    case Role::kActivation:
      return "activation";
    case Role::kGradient:
      return "gradient";
    case Role::kOptimizerState:
      return "optimizer_state";
    case Role::kOutput:
      return "output";
  }
  return "?";
}

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "?";
}

double initial_element(const Initializer& init, uint64_t stream, uint64_t index) {
  switch (init.kind) {
    case Initializer::Kind::kConstant:
      return init.a;
    case Initializer::Kind::kNormal:
      return init.a + init.b * random_normal(stream, 0, index);
    case Initializer::Kind::kUniform:
      return init.a + (init.b - init.a) * random_uniform(stream, 0, index);
  }
  return 0;
}

void initial_elements(const Initializer& init, uint64_t stream, uint64_t first, std::span<double> out) {
  if (init.kind == Initializer::Kind::kNormal) {
    random_normals(stream, 0, first, out);
    for (double& x : out) x = init.a + init.b * x;
    return;
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = initial_element(init, stream, first + i);
}

// Attributes
// ------------------------------------------------------------------------------------------------------------

namespace {

template <typename T>
const T* find_attribute(const std::map<std::string, Attribute>& values, const std::string& name) {
  auto it = values.find(name);
  if (it == values.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  ALTIPLANO_ASSERT(value != nullptr, "attribute {} has another type than asked for", name);
  return value;
}

std::string attribute_text(const Attribute& attribute) {
  if (auto* i = std::get_if<int64_t>(&attribute)) return fmt::format("{}", *i);
  if (auto* f = std::get_if<double>(&attribute)) return fmt::format("{}", *f);
  if (auto* s = std::get_if<std::string>(&attribute)) return *s;
  return fmt::format("[{}]", fmt::join(std::get<std::vector<int64_t>>(attribute), ","));
}

}  // namespace

int64_t Attributes::get_int(const std::string& name, int64_t otherwise) const {
  const auto* value = find_attribute<int64_t>(values_, name);
  return value ? *value : otherwise;
}

double Attributes::get_float(const std::string& name, double otherwise) const {
  const auto* value = find_attribute<double>(values_, name);
  return value ? *value : otherwise;
}

std::string Attributes::get_string(const std::string& name, const std::string& otherwise) const {
  const auto* value = find_attribute<std::string>(values_, name);
  return value ? *value : otherwise;
}

std::vector<int64_t> Attributes::get_ints(const std::string& name) const {
  const auto* value = find_attribute<std::vector<int64_t>>(values_, name);
  return value ? *value : std::vector<int64_t>{};
}

std::string Attributes::to_string() const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values_) parts.push_back(fmt::format("{}={}", name, attribute_text(value)));
  return "{" + join(parts, ", ") + "}";
}

// Graph: building
// -------------------------------------------------------------------------------------------------------

ValueId Graph::find_value(const std::string& value_name) const {
  auto it = by_name_.find(value_name);
  return it == by_name_.end() ? ValueId() : it->second;
}

LayerId Graph::find_layer(const std::string& layer) const {
  for (size_t i = 0; i < layers_.size(); ++i)
    if (layers_[i] == layer) return LayerId(static_cast<int64_t>(i));
  return {};
}

const Parameter* Graph::find_parameter(ValueId value) const {
  for (const Parameter& parameter : parameters_)
    if (parameter.value == value) return &parameter;
  return nullptr;
}

LayerId Graph::add_layer(const std::string& layer) {
  if (LayerId found = find_layer(layer); found.is_valid()) return found;
  layers_.push_back(layer);
  return LayerId(static_cast<int64_t>(layers_.size()) - 1);
}

ValueId Graph::add_value(std::string value_name, Shape shape, DType dtype, Role role, LayerId layer) {
  ValueId id(static_cast<int64_t>(values_.size()));
  ALTIPLANO_ASSERT(!value_name.empty(), "a value needs a name");
  bool is_new = by_name_.emplace(value_name, id).second;
  ALTIPLANO_ASSERT(is_new, "two values are named {}", value_name);
  values_.push_back({id, std::move(value_name), std::move(shape), dtype, role, layer, OpId()});
  return id;
}

namespace {

std::string types_text(std::span<const ValueType> types) {
  std::vector<std::string> parts;
  for (const ValueType& type : types) parts.push_back(std::string(to_string(type.dtype)) + to_string(type.shape));
  return join(parts, ", ");
}

Role output_role(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return Role::kActivation;
    case Phase::kBackward:
      return Role::kGradient;
    case Phase::kUpdate:
      return Role::kOutput;
  }
  return Role::kActivation;
}

/// Types of the outputs, or why the op cannot be used so; names op, kind and shapes.
Result<std::vector<ValueType>> infer_op(const std::string& kind, const std::string& op_name,
                                        const std::vector<ValueType>& inputs, const Attributes& attributes) {
  const OpDefinition* definition = OpTable::instance().find(kind);
  if (!definition) {
    auto close = did_you_mean(kind, OpTable::instance().kinds());
    return invalid_argument("op '{}': there is no op kind '{}'{}", op_name, kind,
                            close ? fmt::format("; did you mean '{}'?", *close) : "");
  }
  auto count = static_cast<int>(inputs.size());
  if (definition->num_inputs < 0 ? count < 1 : count != definition->num_inputs)
    return invalid_argument("op '{}' ({}): takes {} inputs, got {}", op_name, kind,
                            definition->num_inputs < 0 ? "one or more" : fmt::format("{}", definition->num_inputs),
                            count);
  auto outputs = definition->infer(inputs, attributes);
  if (!outputs.is_ok())
    return invalid_argument("op '{}' ({}) on {}: {}", op_name, kind, types_text(inputs), outputs.status().message());
  return outputs;
}

}  // namespace

Result<std::vector<ValueId>> Graph::add_op(const std::string& kind, const std::string& op_name,
                                           std::vector<ValueId> inputs, Attributes attributes, LayerId layer,
                                           Phase phase) {
  for (ValueId input : inputs)
    ALTIPLANO_ASSERT(input.is_valid() && input.index() < values_.size(), "op {}: an input is no value of the graph",
                     op_name);
  if (!layer.is_valid()) return invalid_argument("op '{}' ({}): belongs to no layer; open one first", op_name, kind);
  ALTIPLANO_ASSIGN(std::vector<ValueType> types, infer_op(kind, op_name, types_of(*this, inputs), attributes));
  for (const ValueType& type : types)
    if (is_too_large(type.shape))
      return invalid_argument(
          "op '{}' ({}): its output of shape {} has more than 2^48 elements; make the model or the batch smaller",
          op_name, kind, altiplano::to_string(type.shape));
  auto output_name = [&](size_t i) { return types.size() == 1 ? op_name : fmt::format("{}.{}", op_name, i); };
  for (size_t i = 0; i < types.size(); ++i)
    if (find_value(output_name(i)).is_valid())
      return invalid_argument("op '{}' ({}): the name '{}' is taken", op_name, kind, output_name(i));
  OpId id(static_cast<int64_t>(ops_.size()));
  Op op{id, kind, op_name, std::move(attributes), std::move(inputs), {}, layer, phase};
  for (size_t i = 0; i < types.size(); ++i) {
    op.outputs.push_back(add_value(output_name(i), types[i].shape, types[i].dtype, output_role(phase), layer));
    values_.back().producer = id;
  }
  ops_.push_back(std::move(op));
  return ops_.back().outputs;
}

// Graph: checking
// -------------------------------------------------------------------------------------------------------

Status Graph::infer_again() {
  for (const Op& op : ops_) {
    ALTIPLANO_ASSIGN(std::vector<ValueType> types,
                     infer_op(op.kind, op.name, types_of(*this, op.inputs), op.attributes));
    for (size_t i = 0; i < types.size(); ++i) {
      value(op.outputs[i]).shape = types[i].shape;
      value(op.outputs[i]).dtype = types[i].dtype;
    }
  }
  return Status::ok();
}

namespace {

Status verify_op(const Graph& graph, const Op& op, const std::vector<bool>& available) {
  for (ValueId input : op.inputs)
    if (!available[input.index()])
      return runtime_failure("graph {}: op '{}' uses '{}' before it is produced", graph.name, op.name,
                             graph.value(input).name);
  if (!op.layer.is_valid()) return runtime_failure("graph {}: op '{}' has no layer", graph.name, op.name);
  ALTIPLANO_ASSIGN(std::vector<ValueType> types, infer_op(op.kind, op.name, types_of(graph, op.inputs), op.attributes));
  if (types.size() != op.outputs.size())
    return runtime_failure("graph {}: op '{}' has {} outputs, its definition infers {}", graph.name, op.name,
                           op.outputs.size(), types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const Value& output = graph.value(op.outputs[i]);
    if (output.shape != types[i].shape || output.dtype != types[i].dtype)
      return runtime_failure("graph {}: '{}' is {}{}, the definition of {} infers {}{}", graph.name, output.name,
                             to_string(output.dtype), to_string(output.shape), op.kind, to_string(types[i].dtype),
                             to_string(types[i].shape));
    if (output.producer != op.id)
      return runtime_failure("graph {}: '{}' is an output of '{}' but names another producer", graph.name, output.name,
                             op.name);
  }
  return Status::ok();
}

}  // namespace

Status Graph::verify() const {
  std::vector<bool> available(values_.size());
  std::map<std::string, int> names;
  for (const Value& v : values_) {
    available[v.id.index()] = !v.producer.is_valid();
    if (names[v.name]++) return runtime_failure("graph {}: two values are named '{}'", name, v.name);
  }
  for (const Parameter& parameter : parameters_)
    if (!value(parameter.value).layer.is_valid())
      return runtime_failure("graph {}: parameter '{}' belongs to no layer", name, value(parameter.value).name);
  for (const Op& op : ops_) {
    ALTIPLANO_RETURN_IF_ERROR(verify_op(*this, op, available));
    for (ValueId output : op.outputs) {
      if (available[output.index()])
        return runtime_failure("graph {}: '{}' is produced twice", name, value(output).name);
      available[output.index()] = true;
    }
  }
  return Status::ok();
}

// Graph: text
// -----------------------------------------------------------------------------------------------------------

namespace {

std::string type_text(const Value& value) {
  return std::string(to_string(value.dtype)) + to_string(value.shape);
}

std::string layer_text(const Graph& graph, LayerId layer) {
  return layer.is_valid() ? graph.layer_name(layer) : "-";
}

std::string op_line(const Graph& graph, const Op& op) {
  std::vector<std::string> outputs, inputs, types;
  for (ValueId id : op.outputs) outputs.push_back("%" + graph.value(id).name);
  for (ValueId id : op.inputs) inputs.push_back("%" + graph.value(id).name);
  for (ValueId id : op.outputs) types.push_back(type_text(graph.value(id)));
  std::string attributes = op.attributes == Attributes() ? "" : " " + op.attributes.to_string();
  return fmt::format("{} = {}({}){} : {}   # {} {}\n", join(outputs, ", "), op.kind, join(inputs, ", "), attributes,
                     join(types, ", "), layer_text(graph, op.layer), to_string(op.phase));
}

std::string parameter_text(const Parameter& parameter) {
  static constexpr const char* kKinds[] = {"constant", "normal", "uniform"};
  return fmt::format("{}({},{}){}{}", kKinds[static_cast<int>(parameter.init.kind)], parameter.init.a, parameter.init.b,
                     parameter.trainable ? "" : " frozen", parameter.decay ? "" : " no_decay");
}

}  // namespace

std::string Graph::to_string() const {
  std::string text;
  for (const Value& v : values_)
    if (!v.producer.is_valid())
      text += fmt::format("%{} = {} : {}   # {}\n", v.name, altiplano::to_string(v.role), type_text(v),
                          layer_text(*this, v.layer));
  for (const Op& op : ops_) text += op_line(*this, op);
  return text;
}

uint64_t Graph::fingerprint() const {
  std::string text = to_string();
  for (const Parameter& parameter : parameters_)
    text += fmt::format("{} {}\n", value(parameter.value).name, parameter_text(parameter));
  return altiplano::fingerprint(text);
}

}  // namespace altiplano
