#pragma once
// search/ (L3): what planners search over: shardings, stages, and their costs as problems of choices. Pure functions
// over graphs, meshes and prices; no plugin, no Program. May include L0 to L2 and plan/.
//
// ShardingProblem: how every op runs and every tensor lies on given meshes as a ChoiceProblem, after Alpa (Zheng et
// al., OSDI 2022, section 4): one node per op with its strategies from the factor rule; one node per parameter with its
// storage specs; one node per value whose producer may leave partial sums and that several ops read, with the specs it
// can be kept in. Edges are the prices of the reshard paths between them, rows the bytes that live at once. What the
// runtime does is what is priced: a value is brought from the produced into the stored spec at once, from there into
// the spec of each use; a parameter from storage into its uses, its gradient once per step into the optimizer's spec.
// So data, tensor, sequence and vocabulary parallelism and sharded storage of parameters are all choices of the same
// problem.
//
// Ops at the same place of layers of equal class are one node: equal layers choose alike, and the problem does not grow
// with depth.
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "framework/base/units.hpp"
#include "framework/graph/training_graph.hpp"
#include "framework/sharding/graph_facts.hpp"
#include "framework/sharding/reshard.hpp"
#include "framework/sharding/rule.hpp"
#include "framework/solve/choice_problem.hpp"

namespace altiplano {

/// What things cost, in any unit as long as it is one. `mesh`: index into ShardingQuestion::meshes.
struct ShardingPrices {
  /// One op once, on local operands.
  std::function<double(const Op& op, std::span<const ValueType> inputs, std::span<const ValueType> outputs)> compute;
  /// One step of a reshard path of a tensor of this (block) shape. `in_bucket`: once per step, together with many
  /// others that take the same path, so that what a collective costs before it moves anything is shared.
  std::function<double(size_t mesh, const ReshardStep& step, const Shape& shape, DType dtype, bool in_bucket)> reshard;
  /// What it costs per step that a parameter or an input of the model lies so, apart from its update; may be empty.
  std::function<double(size_t mesh, const Value& value, const ShardingSpec& spec)> storage;
};

/// The memory of the fullest rank of one stage.
struct ShardingMemory {
  std::vector<bool> layers;  ///< by LayerId: on this stage
  int microbatches_in_flight = 1;
  Bytes limit;
};

struct ShardingQuestion {
  const TrainingGraph* training = nullptr;
  const GraphFacts* facts = nullptr;  ///< of the graph; null: found anew
  std::vector<MeshShape> meshes;
  std::vector<size_t> mesh_of_layer;  ///< by LayerId
  std::vector<int> layer_class;       ///< by LayerId; only layers of equal signature and mesh may share one
  /// The runtime's rule: replicas have their own samples, so ops that see the batch split it over the data axis, and
  /// inputs of the model come split so. False: axes are free, as in Alpa.
  bool batch_on_data = true;
  bool storage_on_data = true;            ///< parameters may be stored split over the data axis (gathered for each use)
  int64_t block_batch = 0;                ///< samples of all replicas in a microbatch; 0: the global batch
  double microbatch_weight = 1;           ///< of what happens in every microbatch
  double step_weight = 1;                 ///< of what happens once per step
  int zero = 0;                           ///< ZeRO stage, see PlanStage
  std::map<ValueId, ShardingSpec> fixed;  ///< storage of parameters that is given
  std::vector<ShardingMemory> memory;     ///< one row or more each; empty: no limit
};

/// What each layer adds to a step under some choices, by LayerId. Times in the prices' unit for one microbatch and for
/// one step, bytes on one rank.
struct LayerShares {
  std::vector<double> microbatch, step;
  std::vector<double> persistent;  ///< parameters, accumulators and states
  std::vector<double> stash;       ///< per microbatch in flight
  double work = 0;                 ///< the most that else lives at once anywhere
};

/// What was chosen, by id. Strategies of update ops and specs of other values are empty.
struct ChosenShardings {
  std::vector<Strategy> strategies;            ///< by OpId
  std::map<ValueId, ShardingSpec> stored;      ///< values with a node of their own: the spec they are kept in
  std::map<ValueId, ShardingSpec> parameters;  ///< storage
};

class ShardingProblem {
 public:
  /// Refuses ops that have no strategy and fixed specs that are none of the parameter's.
  static Result<ShardingProblem> build(const ShardingQuestion& question, const ShardingPrices& prices);

  const ChoiceProblem& problem() const { return problem_; }
  ChoiceProblem& problem() { return problem_; }
  /// One choice per node of `problem`.
  ChosenShardings chosen(const std::vector<int>& choices) const;
  LayerShares shares(const std::vector<int>& choices) const;
  /// problem() without rows, each byte that a layer holds costing `per_byte`, those of a stash `in_flight` times: its
  /// solutions are the corners of the frontier of time and memory.
  ChoiceProblem with_priced_bytes(double per_byte, double in_flight) const;
  /// The row of problem() from which each of question.memory's rows begin; one more at the end.
  const std::vector<size_t>& first_row() const { return first_row_; }

 private:
  friend class ShardingProblemBuilder;
  enum class ShareKind : uint8_t { kMicrobatch, kStep, kPersistent, kStash };
  /// tables_[table] at the choice of node a, or at the pair of choices of a and b.
  struct Share {
    ShareKind kind;
    LayerId layer;
    int a, b;  ///< b < 0: a alone
    size_t table;
  };
  double value_of(const Share& share, const std::vector<int>& choices) const;
  ChoiceProblem problem_;
  std::vector<int> node_of_op_, node_of_value_;    ///< -1: none
  std::vector<bool> is_parameter_;                 ///< by ValueId
  std::vector<std::vector<Strategy>> strategies_;  ///< by node, of ops
  std::vector<std::vector<ShardingSpec>> specs_;   ///< by node, of values
  std::vector<size_t> first_row_;
  std::vector<std::vector<double>> tables_;
  std::vector<Share> shares_;
  std::vector<std::vector<Share>> work_;  ///< sets of transient values that live at once
  size_t num_layers_ = 0;
  double microbatch_weight_ = 1, step_weight_ = 1;
};

/// Layers of equal signature (GraphFacts), mesh and fixed storage share a class, numbered in order of appearance.
std::vector<int> classes_of_layers(const std::vector<uint64_t>& signatures, const std::vector<size_t>& mesh_of_layer);

}  // namespace altiplano
