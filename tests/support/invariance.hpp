#pragma once
// The plan-invariance model, its plans as data, and the comparison of a plan's training with that of one rank (design
// invariant 2).
#include <string>
#include <vector>

#include "framework/plan/degrees.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/train.hpp"

namespace altiplano::test {

/// 8 layers, hidden 48, 24 heads, vocabulary 257 (uneven on any tensor degree), global batch 24, dropout on.
GptShape invariance_shape(bool tied = true, bool packed = false);

struct PlanCase {
  Degrees degrees;
  int64_t microbatch = 4;
  std::string schedule = "1f1b";
  int zero = 1;
  bool sequence_parallel = true;
  bool tied = true;
  std::string optimizer = "adamw";
  std::vector<int64_t> split = {};
  bool packed = false;     ///< documents are told apart, positions restart
  bool recompute = false;  ///< of all layers but the last
  bool fused = false;      ///< the graph is the one that the fusion pass makes

  std::string to_string() const;  ///< "data 2 tensor 1 pipeline 3, microbatch 4, gpipe, …"
};

/// The graph a case trains; made once per (tied, optimizer, dtype, packed, fused, recompute).
const TrainingGraph& graph_of(const PlanCase& plan_case, DType dtype = DType::kF64);
Plan plan_of(const PlanCase& plan_case, const TrainingGraph& graph);
/// The same training on one rank with one microbatch, and on device/reference unfused; run once per (tied, optimizer,
/// dtype, packed, device, steps, rate).
const TrainResult& one_rank_run(const PlanCase& plan_case, DType dtype, const TrainOptions& options);
Plan one_rank_plan(const TrainingGraph& graph);

/// Every (data, tensor, pipeline) of 1, 2, 3, 4, 6 and 8 ranks, in order.
std::vector<Degrees> degrees_of_all_ranks();

struct Tolerance {
  double loss = 1e-9, norm = 1e-9, tensors = 1e-9;
  bool relative_norm = false;
};
/// What differs beyond the tolerance: empty when the two trainings are the same. Also holds replicas, initial weights
/// and memory to be exact.
std::string difference(const TrainResult& run, const TrainResult& one, const Tolerance& tolerance = {});
/// Trains the case and compares it with one rank; an error names the case. Returns the run.
TrainResult check_invariant(const PlanCase& plan_case, const TrainOptions& options = {}, DType dtype = DType::kF64,
                            const Tolerance& tolerance = {});

/// Same losses, norms and tensors bit by bit.
bool is_bit_identical(const TrainResult& a, const TrainResult& b);

}  // namespace altiplano::test
