#pragma once
// Plans from degrees: the arithmetic that every planner which thinks in (data, tensor, pipeline) shares. Pure.
#include <optional>

#include "framework/cluster/cluster.hpp"
#include "framework/plan/plan.hpp"

namespace altiplano {

struct Degrees {
  int data = 1, tensor = 1, pipeline = 1;
  int num_ranks() const { return data * tensor * pipeline; }
};

struct DegreePlanOptions {
  Degrees degrees;
  int64_t microbatch = 1;  ///< samples per replica and microbatch
  int zero = 1;
  bool sequence_parallel = true;  ///< ignored when tensor is 1
  std::string schedule = "1f1b";
  std::vector<int64_t> split;  ///< layers per stage; empty: balanced by FLOPs
  std::string planner = "planner/manual";
};

/// Everything of the Plan but `sharding` and `predicted`. Slots: tensor axis fastest, then data, pipeline slowest, so
/// that consecutive slots of a node share a tensor group. Refusals carry the numbers and the nearest legal values.
Result<Plan> plan_from_degrees(const TrainingGraph& graph, const Cluster& cluster, const DegreePlanOptions& options);

/// Layers per stage. With an explicit `split` its sum is the number of all layers, or of the repeated ones (the most
/// frequent signature): then what stands before and after them goes to the first and last stage. Balanced otherwise:
/// smallest possible largest stage, every layer once.
Result<std::vector<std::vector<std::string>>> split_layers(const Graph& graph, int stages,
                                                           const std::vector<int64_t>& split);

/// Forward and backward FLOPs of each layer for one global batch.
std::vector<Flops> layer_flops(const Graph& graph);

/// The legal (micro) batch sizes: divisors of global / data.
Status check_batch(int64_t global_batch, int64_t microbatch, int data);

}  // namespace altiplano
