#pragma once
// OpDefinition: everything the framework knows of an op kind. One small record per kind, in a file per family under
// graph/ops/; nothing else switches on op kinds except device kernels. Plugins of kind `op` add records at run time.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/base/units.hpp"
#include "framework/graph/graph.hpp"

namespace altiplano {

struct ValueType {
  Shape shape;
  DType dtype = DType::kF32;
};

/// What a gradient function sees: the forward op, its graph, and the gradient value of each output (invalid id: none
/// flows). It adds ops (phase backward, layer of the forward op) through `emit` and returns one gradient per input
/// (invalid id where the input needs none, e.g. token ids). Autodiff casts a gradient of another type to
/// gradient_dtype() of its input.
class GradientContext {
 public:
  /// `needs_gradient` by value index, of the forward graph: values added since then need none. Outlives the context.
  GradientContext(Graph& graph, const Op& op, std::vector<ValueId> output_gradients,
                  const std::vector<bool>& needs_gradient)
      : graph_(graph), op_(op), output_gradients_(std::move(output_gradients)), needs_gradient_(needs_gradient) {}
  const Op& op() const { return op_; }
  const Graph& graph() const { return graph_; }
  ValueId output_gradient(size_t i = 0) const { return output_gradients_[i]; }
  const Value& input(size_t i) const { return graph_.value(op_.inputs[i]); }
  /// Whether the gradient of this value is of use to anybody: not of frozen parameters and of what only they need.
  bool wants(ValueId value) const { return value.index() < needs_gradient_.size() && needs_gradient_[value.index()]; }
  bool wants_input(size_t i) const { return wants(op_.inputs[i]); }
  /// The type a gradient of this value has: accumulate dtype for parameters and for views of them, else the value's
  /// own.
  DType gradient_dtype(ValueId value) const;
  /// Appends `kind` named `<op name>.grad.<suffix>`; returns its outputs. A failure is an internal error (asserts).
  std::vector<ValueId> emit(const std::string& kind, const std::string& suffix, std::vector<ValueId> inputs,
                            Attributes attributes = {});
  ValueId emit1(const std::string& kind, const std::string& suffix, std::vector<ValueId> inputs,
                Attributes attributes = {}) {
    return emit(kind, suffix, std::move(inputs), std::move(attributes))[0];
  }
  /// A gradient of a value that is no input of the op but produced before it (the logits behind a cross entropy).
  void add_gradient(ValueId value, ValueId gradient) { extra_gradients_.emplace_back(value, gradient); }
  const std::vector<std::pair<ValueId, ValueId>>& extra_gradients() const { return extra_gradients_; }
  /// The op cannot be differentiated as it is used here: autodiff returns this Status.
  void refuse(Status status) { status_ = std::move(status); }
  const Status& status() const { return status_; }

 private:
  Graph& graph_;
  const Op op_;  // a copy: emit() may move the graph's op vector
  std::vector<ValueId> output_gradients_;
  const std::vector<bool>& needs_gradient_;
  std::vector<std::pair<ValueId, ValueId>> extra_gradients_;
  Status status_;
};

/// Types of values of a graph, as the functions below take them.
std::vector<ValueType> types_of(const Graph& graph, const std::vector<ValueId>& values);

struct OpDefinition {
  std::string kind;
  std::string help;    ///< one line: what it computes, inputs -> outputs
  int num_inputs = 1;  ///< -1: any number (at least one); 0: a constant

  /// Output types from input types; refuses wrong shapes with the numbers. Never null.
  std::function<Result<std::vector<ValueType>>(std::span<const ValueType> inputs, const Attributes& attributes)> infer;
  /// Sharding rule as a factor string for these types, e.g. "[b,s,d] [d,f] -> [b,s,f]  sum: d". Never null. Grammar:
  /// sharding/rule.hpp.
  std::function<std::string(std::span<const ValueType> inputs, std::span<const ValueType> outputs,
                            const Attributes& attributes)>
      rule;
  /// Floating-point operations. Null: one per output element.
  std::function<double(std::span<const ValueType> inputs, std::span<const ValueType> outputs,
                       const Attributes& attributes)>
      flops;
  /// Null: not differentiable (no gradient flows; an error if one is asked for).
  std::function<std::vector<ValueId>(GradientContext& context)> gradient;
  /// aliases[i] = j: output i is written over input j's buffer (optimizer updates). Empty: none.
  std::vector<int> aliases;
  /// The output is the input in another layout (reshape, slice, …): a view of a parameter counts as a parameter in
  /// gradient_dtype.
  bool is_layout = false;
  /// Elements of what stands between the products an op is made of (attention: its scores), which a device that makes
  /// them one after the other writes and reads again. Null: none.
  std::function<double(std::span<const ValueType> inputs)> inner_elements;
  /// Outputs from this one on are constants to autodiff: no gradient flows into them. -1: none is.
  int num_differentiable = -1;
  /// Its attribute `samples` says over how many samples of the global batch it computes together (statistics of batch
  /// normalization): a plan must bring just as many at once (samples_together.hpp).
  bool takes_samples_together = false;
};

/// Bytes an op reads and writes when nothing is fused: the sum over its operands.
Bytes operand_bytes(std::span<const ValueType> inputs, std::span<const ValueType> outputs);

/// The process-wide table of op kinds: built-in families are there from the start, op plugins add to it before graphs
/// are built. Reading is thread-safe, adding is not.
class OpTable {
 public:
  static OpTable& instance();
  /// Nothing of that kind: nullptr.
  const OpDefinition* find(const std::string& kind) const;
  const OpDefinition& get(const std::string& kind) const;  ///< asserts
  Status add(OpDefinition definition);                     ///< a duplicate kind is refused
  std::vector<std::string> kinds() const;

 private:
  OpTable();
  std::map<std::string, OpDefinition> definitions_;
};

// One function per family file in graph/ops/.
void add_matmul_ops(std::vector<OpDefinition>& out);
void add_elementwise_ops(std::vector<OpDefinition>& out);
void add_normalization_ops(std::vector<OpDefinition>& out);
void add_attention_ops(std::vector<OpDefinition>& out);
void add_fused_ops(std::vector<OpDefinition>& out);
void add_embedding_ops(std::vector<OpDefinition>& out);
void add_loss_ops(std::vector<OpDefinition>& out);
void add_reduction_ops(std::vector<OpDefinition>& out);
void add_layout_ops(std::vector<OpDefinition>& out);
void add_optimizer_ops(std::vector<OpDefinition>& out);
void add_convolution_ops(std::vector<OpDefinition>& out);
void add_batch_norm_ops(std::vector<OpDefinition>& out);
void add_expert_ops(std::vector<OpDefinition>& out);

}  // namespace altiplano
