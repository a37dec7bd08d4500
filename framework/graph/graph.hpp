#pragma once
// Graph: values and ops in execution order (an op's inputs are produced earlier), with layers and parameters. A plain value:
// copy it, print it, compare its text. Shapes of activations are those of the *global batch*: dim 0 of the model's inputs is
// the batch, a microbatch or a data-parallel replica is a box of it and appears nowhere here.
//
// Invariants (Graph::verify): every value has at most one producer; inputs precede their users; shapes and dtypes are those the
// op's definition infers; names are unique; each parameter belongs to one layer.
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "framework/base/ids.hpp"
#include "framework/base/status.hpp"
#include "framework/graph/dtype.hpp"

namespace altiplano {

enum class Role : uint8_t { kInput, kParameter, kActivation, kGradient, kOptimizerState, kOutput };
enum class Phase : uint8_t { kForward, kBackward, kUpdate };
const char* to_string(Role role);
const char* to_string(Phase phase);

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
/// Named constants of an op. Ordered, so that two equal ops print equally.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> init) : values_(init) {}
  void set(const std::string& name, Attribute value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  int64_t get_int(const std::string& name, int64_t otherwise = 0) const;
  double get_float(const std::string& name, double otherwise = 0) const;
  std::string get_string(const std::string& name, const std::string& otherwise = "") const;
  std::vector<int64_t> get_ints(const std::string& name) const;
  std::string to_string() const;  ///< "{axis=1, p=0.1}"
  bool operator==(const Attributes&) const = default;

 private:
  std::map<std::string, Attribute> values_;
};

struct Value {
  ValueId id;
  std::string name;
  Shape shape;
  DType dtype = DType::kF32;
  Role role = Role::kActivation;
  LayerId layer;
  OpId producer;  ///< invalid for inputs, parameters and optimizer states
};

struct Op {
  OpId id;
  std::string kind;
  std::string name;  ///< unique; the stream name of ops that draw random numbers (attribute `stream` overrides)
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  LayerId layer;
  Phase phase = Phase::kForward;
};

/// How a parameter starts. Element i of the global tensor is a pure function of (seed, parameter name, i).
struct Initializer {
  enum class Kind : uint8_t { kConstant, kNormal, kUniform } kind = Kind::kConstant;
  double a = 0;  ///< constant: the value; normal: mean; uniform: low
  double b = 0;  ///< normal: standard deviation; uniform: high
};

/// Element `index` (row-major) of a tensor that starts so; stream = random_stream(seed, parameter name).
double initial_element(const Initializer& init, uint64_t stream, uint64_t index);
/// The same for the elements first, first + 1, ..., many times faster.
void initial_elements(const Initializer& init, uint64_t stream, uint64_t first, std::span<double> out);

struct Parameter {
  ValueId value;
  Initializer init;
  bool trainable = true;
  bool decay = true;  ///< weight decay applies (no for biases and norms)
};

class Graph {
 public:
  std::string name;

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Op>& ops() const { return ops_; }
  const std::vector<std::string>& layers() const { return layers_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::vector<Parameter>& parameters() { return parameters_; }
  const Value& value(ValueId id) const { return values_[id.index()]; }
  Value& value(ValueId id) { return values_[id.index()]; }
  const Op& op(OpId id) const { return ops_[id.index()]; }
  const std::string& layer_name(LayerId id) const { return layers_[id.index()]; }
  /// Invalid id when there is none.
  ValueId find_value(const std::string& name) const;
  LayerId find_layer(const std::string& name) const;
  const Parameter* find_parameter(ValueId value) const;

  /// Layers are added in execution order; a layer of that name is returned if there is one.
  LayerId add_layer(const std::string& name);
  ValueId add_value(std::string name, Shape shape, DType dtype, Role role, LayerId layer);
  void add_parameter(Parameter parameter) { parameters_.push_back(parameter); }
  /// Appends an op whose outputs are inferred by its definition. `name` must be unique; output values are named `name` (single
  /// output) or `name.0`, `name.1`, … A wrong use is a Status that names op, kind and shapes.
  Result<std::vector<ValueId>> add_op(const std::string& kind, const std::string& name, std::vector<ValueId> inputs,
                                      Attributes attributes, LayerId layer, Phase phase);

  /// Re-infers every value's dtype and shape in order after parameters or inputs changed type (the precision pass).
  Status infer_again();
  Status verify() const;
  /// One line per op: `%name = kind(%a, %b) {attrs} : f32[24,128,48]   # layer phase`. Stable, for golden tests.
  std::string to_string() const;
  /// Hash of to_string() and parameters: part of Plan and checkpoint.
  uint64_t fingerprint() const;

 private:
  std::vector<Value> values_;
  std::vector<Op> ops_;
  std::vector<std::string> layers_;
  std::vector<Parameter> parameters_;
  std::map<std::string, ValueId> by_name_;
};

/// Signature per layer: two layers with the same signature are isomorphic (same ops, shapes, attributes in the same order up to
/// names), so that every search works once per signature.
std::vector<uint64_t> layer_signatures(const Graph& graph);

}  // namespace altiplano
