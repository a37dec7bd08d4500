#pragma once
// Private to search/: how a ShardingProblem is made. Nodes first, then the edges between them, then the rows of memory.
#include <algorithm>
#include <tuple>

#include "framework/search/live_rows.hpp"
#include "framework/search/sharding_problem.hpp"

namespace altiplano {

class ShardingProblemBuilder {
 public:
  ShardingProblemBuilder(const ShardingQuestion& question, const ShardingPrices& prices)
      : question_(question), prices_(prices), training_(*question.training), graph_(training_.graph) {}

  Result<ShardingProblem> run();

 private:
  const MeshShape& mesh(LayerId layer) const { return question_.meshes[mesh_index(layer)]; }
  size_t mesh_index(LayerId layer) const { return question_.mesh_of_layer[layer.index()]; }
  int class_of(LayerId layer) const { return question_.layer_class[layer.index()]; }
  Shape block_shape(ValueId id) const;
  /// Where each op stands in its layer, where each parameter does, and who reads what.
  void find_places();
  int add_node(std::vector<double> costs);
  /// The node for a place in a class of layers, if an equal layer has one already: what it costs there is added once
  /// more.
  int shared_node(const std::tuple<char, int, int, int>& key);
  int share_node(const std::tuple<char, int, int, int>& key, const std::vector<double>& costs);

  // sharding_nodes.cpp: what there is to choose, and what each choice costs by itself
  Status add_inputs_and_parameters();
  Status add_parameter(const Parameter& parameter);
  /// Tables are kept once per nodes and purpose: `table` is only read when there is none of that key.
  void add_share(ShardingProblem::ShareKind kind, LayerId layer, int a, int b, const std::vector<double>& table,
                 int purpose = 0);
  template <typename Table>
  ShardingProblem::Share share_of(ShardingProblem::ShareKind kind, LayerId layer, int a, int b, int purpose,
                                  Table table) {
    auto [known, fresh] = tables_.emplace(std::tuple(kind, a, b, purpose), out_.tables_.size());
    if (fresh) out_.tables_.push_back(table());
    return {kind, layer, a, b, known->second};
  }
  ShardingSpec optimizer_spec(const Value& parameter, const ShardingSpec& storage) const;
  /// Whether each microbatch's gradients are reduced, not their sum once a step.
  bool reduces_at_once() const { return question_.zero >= 2; }
  /// Its update on the optimizer's share, and the way of the result back into storage.
  double storage_cost(const Value& value, const ShardingSpec& spec);
  std::vector<ValueType> update_types(const std::vector<ValueId>& ids, const Shape& whole, const Shape& local) const;
  Status add_op(const Op& op);
  std::vector<ValueType> local_types(const std::vector<ValueId>& ids, const std::vector<ShardingSpec>& specs,
                                     LayerId layer) const;
  /// All that the rule allows and that give every device something to do, the first of those that lie alike.
  std::vector<Strategy> strategies_of(const Op& op) const;
  bool may_be_partial(ValueId id, size_t output) const;
  bool needs_node(const Value& value, size_t output) const;
  static size_t output_index(const Op& op, ValueId id);
  void add_stored(const Value& value);

  // sharding_edges.cpp: what pairs of choices cost
  double reshard_cost(size_t mesh_number, const ShardingSpec& from, const ShardingSpec& to, const Shape& shape,
                      DType dtype, bool in_bucket = false);
  /// What an edge's prices are for: those of one kind between two nodes are alike, whichever of the equal layers they
  /// join.
  enum class EdgeKind : uint8_t { kUse, kStore, kGradient, kFurtherGradient };
  /// Adds the price of every pair of choices to the edge of two nodes.
  template <typename Price>
  void add_edge(int a, int b, LayerId layer, EdgeKind kind, size_t number, Price price) {
    const size_t size_a = out_.problem_.nodes[to_index(a)].size(), size_b = out_.problem_.nodes[to_index(b)].size();
    std::vector<double>& prices = priced_[{a, b, kind, number}];
    if (prices.empty())
      for (size_t i = 0; i < size_a; ++i)
        for (size_t j = 0; j < size_b; ++j) prices.push_back(a != b || i == j ? price(i, j) : 0);
    const bool is_of_step = kind == EdgeKind::kGradient && !reduces_at_once();
    add_share(is_of_step ? ShardingProblem::ShareKind::kStep : ShardingProblem::ShareKind::kMicrobatch, layer, a, b,
              prices, static_cast<int>(4 * number) + static_cast<int>(kind));
    if (a == b) {  // a layer before its equal: a choice meets itself
      for (size_t k = 0; k < size_a; ++k) out_.problem_.nodes[to_index(a)][k] += prices[k * size_a + k];
      return;
    }
    ChoiceEdge& edge = edges_[std::pair(std::min(a, b), std::max(a, b))];
    edge.a = std::min(a, b);
    edge.b = std::max(a, b);
    edge.costs.resize(size_a * size_b, 0);
    for (size_t i = 0; i < size_a; ++i)
      for (size_t j = 0; j < size_b; ++j) edge.costs[a > b ? j * size_a + i : i * size_b + j] += prices[i * size_b + j];
  }
  ShardingSpec source_spec(ValueId id, size_t choice) const;
  int source_node(ValueId id) const;
  void add_uses(const Op& op);
  /// Contributions add up in the first one's spec, and once per step the sum goes where the optimizer works; from ZeRO
  /// stage 2 on each goes there at once.
  void add_gradients();
  void add_gradient(const ParameterTraining& training, ValueId contribution, double weight);
  void add_further_contribution(ValueId id, const Value& first);

  // sharding_memory.cpp: what choices hold
  double local_bytes(const Value& value, const ShardingSpec& spec, LayerId layer, DType dtype) const;
  /// Bytes of every layer, for shares: as the rows count them, once per layer.
  void add_bytes();
  std::vector<double> storage_bytes(const Value& value) const;
  /// Whose choice says how the sum of a parameter's gradients lies, and on which layer's mesh.
  struct AccumulatorNode {
    int node;
    LayerId layer;
    ValueId first;  ///< contribution there
  };
  AccumulatorNode accumulator_node(const ParameterTraining& training, ValueId first) const;
  std::vector<double> accumulator_bytes(const ParameterTraining& training, const AccumulatorNode& at) const;
  std::vector<double> value_bytes(const Value& value, DType dtype) const;
  void add_memory();
  std::vector<double>& use_of(std::map<int, std::vector<double>>& uses, int node) const;
  /// Parameters that the stage uses, and the accumulators and states of those that are at home there.
  void add_persistent(const ShardingMemory& memory, std::map<int, std::vector<double>>& uses);
  void add_accumulator(const ParameterTraining& p, const ShardingMemory& memory,
                       std::map<int, std::vector<double>>& uses);
  void add_live(const LiveValue& live, const ShardingMemory& memory, std::map<int, std::vector<double>>& uses) const;

  const ShardingQuestion& question_;
  const ShardingPrices& prices_;
  const TrainingGraph& training_;
  const Graph& graph_;
  GraphFacts own_facts_;
  const GraphFacts& facts_ = question_.facts != nullptr ? *question_.facts : own_facts_;
  const std::vector<ShardingRule>& rules_ = facts_.rules;
  const std::vector<int>& batch_dim_ = facts_.batch_dim;
  std::vector<int> place_of_op_;
  std::map<ValueId, int> place_of_parameter_;
  std::vector<std::vector<OpId>> users_;
  std::map<ValueId, const ParameterTraining*> training_of_;
  std::map<ValueId, ValueId> contributes_to_;
  std::map<std::tuple<char, int, int, int>, int> shared_;
  std::map<int, std::vector<double>> costs_of_one_;  ///< by shared node: what one layer adds
  std::map<std::pair<int, int>, ChoiceEdge> edges_;
  std::map<std::tuple<int, int, EdgeKind, size_t>, std::vector<double>> priced_;
  std::map<std::tuple<ShardingProblem::ShareKind, int, int, int>, size_t> tables_;
  std::map<std::tuple<size_t, ShardingSpec, ShardingSpec, Shape, DType, bool>, double> paths_;
  ShardingProblem out_;
};

}  // namespace altiplano
