#pragma once
// Planner plugins implement one or both halves: stages (inter-operator) and sharding (intra-operator). They get memory
// rules and costs through PlannerServices, never by including other plugins. Pure: same request, same plan.
#include <functional>
#include <string>
#include <vector>

#include "framework/api/plugin.h"
#include "framework/api/schedule.hpp"
#include "framework/base/status.hpp"
#include "framework/cluster/cluster.hpp"
#include "framework/options/option.hpp"
#include "framework/plan/plan.hpp"
#include "framework/sharding/graph_facts.hpp"

namespace altiplano {

/// Exact peak bytes per rank of a plan (lowers it), its predicted step.
struct PlanEstimate {
  std::vector<Bytes> peak_per_rank;
  std::vector<Bytes> weights_per_rank, gradients_per_rank, optimizer_per_rank, activations_per_rank;
  PlanPrediction prediction;
};

struct PlannerServices {
  std::function<Result<PlanEstimate>(const Plan&)> estimate;
  std::function<Result<const Schedule*>(const std::string& name)> schedule;  ///< "1f1b" -> schedule/1f1b
  /// What `estimate` says, from the first rank of every stage alone: faster by the ranks of a stage. Others may need a
  /// little more, for uneven pieces and what crosses stages.
  std::function<Result<PlanEstimate>(const Plan&)> preview;
};

struct PlanRequest {
  const TrainingGraph* graph = nullptr;
  SharedFacts facts = nullptr;  ///< of the graph; null: found anew
  const Cluster* cluster = nullptr;
  const PlannerServices* services = nullptr;
  Options options;  ///< the `parallel:` section
  int zero = 1;     ///< ZeRO stage to plan with (PlanStage::zero); the job file's where it names one
  /// Whether a refusal names the smallest change that fits, which may take long to find.
  bool wants_advice = true;
  int num_ranks = 1;
  int64_t global_batch = 1;
  int64_t microbatch = 0;    ///< 0: follows from accumulation, else the planner chooses
  int64_t accumulation = 0;  ///< microbatches per replica and step; 0: follows
  Bytes memory_per_rank;     ///< limit
};

class StagePlanner {
 public:
  virtual ~StagePlanner() = default;
  /// Fills everything of the plan but its shardings; those too where they were found on the way, for the sharding half
  /// of the same planner alone, which may keep them.
  virtual Result<Plan> plan_stages(const PlanRequest& request) const noexcept = 0;
};

class ShardingPlanner {
 public:
  virtual ~ShardingPlanner() = default;
  /// Fills `plan.sharding` for the stages chosen.
  virtual Status plan_sharding(const PlanRequest& request, Plan& plan) const noexcept = 0;
};

class Planner {
 public:
  static constexpr uint32_t kKind = ALTIPLANO_PLUGIN_PLANNER;
  static constexpr uint32_t kInterfaceVersion = 1;
  virtual ~Planner() = default;
  virtual const StagePlanner* stages() const noexcept { return nullptr; }       ///< null: does not plan stages
  virtual const ShardingPlanner* sharding() const noexcept { return nullptr; }  ///< null: does not plan sharding
};

}  // namespace altiplano
