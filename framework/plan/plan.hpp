#pragma once
// plan/ (L3): who works on what: plans, their text form, what they mean for every op. May include L0-L2; nothing here
// searches or asks hardware.
//
// Plan: complete and portable. It names logical slots, never hosts; a Binding maps slots to ranks for one attempt. Plan
// + graph + Binding determine every rank's Program without another search (design invariant 3).
#include <map>
#include <string>
#include <vector>

#include "framework/base/ids.hpp"
#include "framework/base/status.hpp"
#include "framework/base/units.hpp"
#include "framework/cost/kernel_table.hpp"
#include "framework/graph/training_graph.hpp"
#include "framework/sharding/spec.hpp"

namespace altiplano {

struct GraphFacts;  // sharding/graph_facts.hpp

struct PlanStage {
  std::string name;                 ///< "s0"
  std::vector<std::string> layers;  ///< contiguous, in graph order; printed with ranges "block.0-5"
  std::vector<SlotId> slots;        ///< one per device of the mesh, row-major
  MeshShape mesh;
  /// ZeRO stage, each with what the one before has: 1 splits the optimizer's state over the replicas, 2 the sums of
  /// gradients (reduced after every backward pass), 3 the parameters (gathered for every use).
  int zero = 0;
  std::vector<std::string> recompute = {};  ///< those of `layers` whose backward computes again what it needs
};

struct PlanPrediction {
  Seconds step;
  double tokens_per_second = 0;
  double bubble = 0;               ///< share of the step
  std::vector<Bytes> peak_memory;  ///< per stage: the largest of its ranks
};

struct Plan {
  static constexpr int kFormatVersion = 1;
  static constexpr int kMostZero = 3;
  static constexpr int64_t kMostMicrobatches = 1 << 16;  ///< per replica and step
  std::string model_name;
  uint64_t graph_fingerprint = 0;
  std::string cluster_shape;
  uint64_t cluster_fingerprint = 0;
  std::string cluster_figures = {};  ///< where the cluster's figures come from, where nobody named it; may be empty
  int64_t global_batch = 0, microbatch = 0;  ///< samples; per replica and microbatch
  int num_microbatches = 0;                  ///< per replica
  std::string schedule = "1f1b";
  int chunks = 1;
  DType compute_dtype = DType::kF32;
  bool sequence_parallel = false;
  std::vector<PlanStage> stages;
  /// Specs that the defaults do not imply, by glob over value names; the first match in order wins. Parameters: storage
  /// spec.
  std::vector<std::pair<std::string, ShardingSpec>> sharding;
  /// How ops run where the defaults of assign_shardings are not wanted, by glob over op names: "data:b tensor:f"
  /// (parse_strategy).
  std::vector<std::pair<std::string, std::string>> strategies;
  /// What activations and their gradients are kept in where the defaults are not wanted, by glob over value names.
  /// Never partial.
  std::vector<std::pair<std::string, ShardingSpec>> stored;
  PlanPrediction predicted;
  std::string planner;  ///< "planner/manual"
  KernelTable kernels;  ///< no part of what was planned: how each rank's device makes its kernels
  // Of a plan that was read from a file, for messages: its name, and line and column by key ("stages[0].slots").
  std::string file = {};
  std::map<std::string, std::pair<int, int>> places = {};

  /// "plan.yaml:9:40: stages[0].slots: "; empty when the plan was read from no file.
  std::string where(const std::string& key) const;
  int num_slots() const;
  int data_degree() const { return stages.empty() ? 1 : stages.front().mesh.degree(Axis::kData); }
  const ShardingSpec* find_spec(const std::string& value_name) const;
  std::string to_yaml() const;
  /// Strict: messages name file:line:column and key.
  static Result<Plan> from_yaml(const std::string& text, const std::string& file_name);
};

/// Empties what says how values lie and ops run (sharding, strategies and stored) and what was predicted with that.
void forget_shardings(Plan& plan);

/// Slot -> rank for one attempt.
struct Binding {
  std::vector<RankId> rank_of_slot;
  static Binding identity(int num_slots);
};

/// Proves that the plan can be lowered for this graph: every layer on one stage in order, slots distinct, batch
/// arithmetic exact, equal data degrees, known axes, specs fit their values, fingerprints match. Messages carry the
/// place in the plan's file, the numbers and the valid alternatives.
/// `facts`: of the graph; null: found anew where they are needed.
Status verify_plan(const Plan& plan, const TrainingGraph& graph, const GraphFacts* facts = nullptr);

/// Says in each stage which of its layers the graph recomputes.
void state_recompute(const TrainingGraph& graph, Plan& plan);

/// Layers of the graph by stage; ops of each stage follow their layer.
std::vector<StageId> stage_of_layers(const Plan& plan, const Graph& graph);

}  // namespace altiplano
