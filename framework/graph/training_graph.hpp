#pragma once
// TrainingGraph: a Graph completed by autodiff and optimizer. What every planner and the lowering read.
//
// One training step means (design section 7): loss_sum and token_count are sums over the global batch; the seed of
// backward is d(loss_sum) = 1; each parameter's gradient is the sum of its contributions over all microbatches and
// replicas; the step divides by token_count, clips by the global norm, and runs the update ops.
#include <set>
#include <string>
#include <vector>

#include "framework/graph/graph.hpp"

namespace altiplano {

// Names of what a model may read besides tokens and labels; all i32 [batch, sequence].
/// Position in the sample of the first token of each token's document: never decreases, at most the token's own.
inline constexpr const char* kDocumentStartInput = "document_start";
/// Position of each token in the model's table of positions.
inline constexpr const char* kPositionsInput = "positions";

/// Who trains a parameter. `contributions` are produced in backward (several for a parameter used more than once, maybe
/// on different stages); `gradient` is their sum: it has no producing op, the lowering accumulates it.
struct ParameterTraining {
  ValueId parameter;
  std::vector<ValueId> contributions;
  ValueId gradient;              ///< f32 (f64 when training in f64), the parameter's shape
  ValueId norm_squared;          ///< scalar f64, output of a sum_squares op on `gradient`
  std::vector<ValueId> states;   ///< optimizer states (moments) and, below f32, the master weight
  std::vector<OpId> update_ops;  ///< phase update, in order; they read parameter or master, gradient, states
  ValueId updated;               ///< the new parameter value (the parameter's dtype)
};

struct OptimizerOptions {
  std::string name = "adamw";  ///< adamw | sgd: the op kind of the update
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1, momentum = 0.0;
};

struct TrainingGraph {
  Graph graph;
  std::vector<ValueId> inputs;  ///< tokens, labels and those below: dim 0 is the global batch, dim 1 the sequence
  ValueId loss_sum;             ///< scalar f64: sum of the loss over valid tokens
  ValueId token_count;          ///< scalar f64: number of valid tokens
  ValueId logits;               ///< for generation and evaluation
  std::vector<ParameterTraining> parameters;  ///< the trainable ones, in Graph order
  OptimizerOptions optimizer;
  DType compute_dtype = DType::kF32;
  uint64_t seed = 0;                      ///< of initial weights and dropout
  std::set<std::string> recomputed = {};  ///< layers of which backward computes again what it needs (recompute.hpp)
  /// Of the model as written, before ops were fused, and of the optimizer: equal for every device, so that a plan is.
  uint64_t fingerprint = 0;
};

/// What a model plugin returns: forward only.
struct ModelGraph {
  Graph graph;
  std::vector<ValueId> inputs;
  ValueId loss_sum, token_count, logits;
};

/// precision: parameters (and with them every activation) take `dtype`; statistics keep accumulate_dtype.
Status set_precision(ModelGraph& model, DType dtype);
/// autodiff: appends backward ops for loss_sum; fills `parameters[].contributions/gradient`.
Result<TrainingGraph> differentiate(ModelGraph model);
/// optimizer: appends states, norms and update ops.
Status add_optimizer(TrainingGraph& training, const OptimizerOptions& options);

/// The whole story: set_precision, fuse, differentiate, recompute, add_optimizer, each through the pass door.
/// `fused_kinds`: what fuse() may use; `recomputed`: names of layers.
Result<TrainingGraph> make_training_graph(ModelGraph model, DType dtype, const OptimizerOptions& options, uint64_t seed,
                                          const std::set<std::string>& fused_kinds = {},
                                          const std::set<std::string>& recomputed = {});

}  // namespace altiplano
