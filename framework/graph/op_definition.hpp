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

/// What a gradient function sees: the forward op, its graph, and the gradient value of each output (invalid id: none flows).
/// It adds ops (phase backward, layer of the forward op) through `emit` and returns one gradient per input (invalid id where
/// the input needs none, e.g. token ids).
class GradientContext {
 public:
  GradientContext(Graph& graph, const Op& op, std::vector<ValueId> output_gradients)
      : graph_(graph), op_(op), output_gradients_(std::move(output_gradients)) {}
  const Op& op() const { return op_; }
  const Graph& graph() const { return graph_; }
  ValueId output_gradient(size_t i = 0) const { return output_gradients_[i]; }
  /// Appends `kind` named `<op name>.grad.<suffix>`; returns its outputs. A failure is an internal error (asserts).
  std::vector<ValueId> emit(const std::string& kind, const std::string& suffix, std::vector<ValueId> inputs,
                            Attributes attributes = {});
  ValueId emit1(const std::string& kind, const std::string& suffix, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return emit(kind, suffix, std::move(inputs), std::move(attributes))[0];
  }

 private:
  Graph& graph_;
  const Op op_;  // a copy: emit() may move the graph's op vector
  std::vector<ValueId> output_gradients_;
};

struct OpDefinition {
  std::string kind;
  std::string help;  ///< one line: what it computes, inputs -> outputs
  int num_inputs = 1;  ///< -1: any number (at least one)

  /// Output types from input types; refuses wrong shapes with the numbers. Never null.
  std::function<Result<std::vector<ValueType>>(std::span<const ValueType> inputs, const Attributes& attributes)> infer;
  /// Sharding rule as a factor string for these types, e.g. "[b,s,d] [d,f] -> [b,s,f]  sum: d". Never null. Grammar: sharding/rule.hpp.
  std::function<std::string(std::span<const ValueType> inputs, std::span<const ValueType> outputs, const Attributes& attributes)> rule;
  /// Floating-point operations. Null: one per output element.
  std::function<double(std::span<const ValueType> inputs, std::span<const ValueType> outputs, const Attributes& attributes)> flops;
  /// Null: not differentiable (no gradient flows; an error if one is asked for).
  std::function<std::vector<ValueId>(GradientContext& context)> gradient;
  /// aliases[i] = j: output i is written over input j's buffer (optimizer updates). Empty: none.
  std::vector<int> aliases;
};

/// Bytes an op reads and writes when nothing is fused: the sum over its operands.
Bytes operand_bytes(std::span<const ValueType> inputs, std::span<const ValueType> outputs);

/// The process-wide table of op kinds: built-in families are there from the start, op plugins add to it before graphs are built.
/// Reading is thread-safe, adding is not.
class OpTable {
 public:
  static OpTable& instance();
  /// Nothing of that kind: nullptr.
  const OpDefinition* find(const std::string& kind) const;
  const OpDefinition& get(const std::string& kind) const;  ///< asserts
  Status add(OpDefinition definition);  ///< a duplicate kind is refused
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
void add_embedding_ops(std::vector<OpDefinition>& out);
void add_loss_ops(std::vector<OpDefinition>& out);
void add_reduction_ops(std::vector<OpDefinition>& out);
void add_layout_ops(std::vector<OpDefinition>& out);
void add_optimizer_ops(std::vector<OpDefinition>& out);

}  // namespace altiplano
