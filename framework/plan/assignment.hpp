#pragma once
// ShardingAssignment: what a Plan means for every op and value of a graph: a strategy per op, a storage spec per value.
// A pure function of (graph, plan); all ranks compute the same. No search: parameters follow the plan, the data axis
// follows the batch, other axes follow the parameters and activations that are already split, the cheapest reshard
// decides among what is left.
#include <vector>

#include "framework/plan/plan.hpp"
#include "framework/sharding/dims.hpp"
#include "framework/sharding/graph_facts.hpp"

namespace altiplano {

struct ShardingAssignment {
  SharedFacts facts;                   ///< of the graph
  std::vector<StageId> stage_of_op;    ///< by OpId; update ops: the parameter's home stage
  std::vector<Strategy> strategies;    ///< by OpId, on the mesh of the op's stage
  std::vector<ShardingSpec> produced;  ///< by ValueId: as its producer leaves it
  std::vector<ShardingSpec> stored;  ///< by ValueId: as it is kept for its users (a partial result is resolved at once)
  std::vector<ShardingSpec> parameter;      ///< by ValueId of parameters: storage spec as planned, for any mesh
  std::vector<ShardingSpec> optimizer;      ///< by ValueId of parameters: spec of optimizer state and reduced gradient
  std::vector<StageId> home;                ///< by ValueId: stage of the producer; parameters: first stage that uses it
  std::vector<std::vector<StageId>> users;  ///< by ValueId: stages with an op that reads it, ascending
};

/// Shardings that somebody wants.
struct WantedShardings {
  std::map<ValueId, ShardingSpec> parameters;  ///< storage; absent: as the plan has it
  std::vector<Strategy> strategies;        ///< by OpId, on the mesh of the op's stage; those of update ops do not count
  std::map<ValueId, ShardingSpec> stored;  ///< activations whose stored spec is wanted; never partial
};

/// Adds to plan.sharding, strategies and stored what is needed, and little more, for the plan to mean what is wanted:
/// what the defaults choose by themselves is left out, and what holds in all layers of a numbered kind is said once.
/// `facts`: of the graph; null: found anew, as in assign_shardings.
Status state_shardings(const TrainingGraph& graph, const WantedShardings& wanted, Plan& plan,
                       const SharedFacts& facts = nullptr);

/// The plan must be verified.
Result<ShardingAssignment> assign_shardings(const TrainingGraph& graph, const Plan& plan,
                                            const SharedFacts& facts = nullptr);

/// The plan's storage spec of every parameter (the first pattern that matches, else whole), by ValueId; looked up once,
/// since plans of deep models have many patterns. `normalized` gives what a stage's mesh makes of it.
std::vector<ShardingSpec> parameter_specs(const Graph& graph, const Plan& plan);

/// How ZeRO (Rajbhandari et al., SC 2020) splits over the replicas what `storage` keeps whole on each: the data axis
/// added to the first dim that it divides evenly, else to the longest; unchanged when no dim is longer than one
/// element.
ShardingSpec zero_spec(const ShardingSpec& storage, const Shape& shape, const MeshShape& mesh);

/// What a mesh makes of a parameter's planned storage at a ZeRO stage: from 3 on it is split over the replicas.
ShardingSpec parameter_storage(const ShardingSpec& planned, const Shape& shape, const MeshShape& mesh, int zero);
/// Where its optimizer works, and where its gradient is reduced to: from ZeRO stage 1 on split over the replicas.
ShardingSpec optimizer_storage(const ShardingSpec& planned, const Shape& shape, const MeshShape& mesh, int zero);

}  // namespace altiplano
