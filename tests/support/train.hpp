#pragma once
// Trains a plan on ranks that are threads or processes, on any device, and brings the whole state back: what
// plan-invariance tests compare.
#include <map>
#include <string>
#include <vector>

#include "framework/graph/training_graph.hpp"
#include "framework/plan/plan.hpp"
#include "framework/program/program.hpp"
#include "framework/runtime/executor.hpp"

namespace altiplano::test {

/// Tokens, labels and documents as a pure function of (step, sample, position); about one label in eight is ignored,
/// unevenly over samples.
class SyntheticInput : public InputSource {
 public:
  SyntheticInput(const TrainingGraph& graph, int64_t step) : graph_(graph), step_(step) {}
  Status fill(ValueId input, const Box& box, void* destination) override;

 private:
  const TrainingGraph& graph_;
  int64_t step_;
};

struct TrainOptions {
  std::string device = "reference", comm = "inproc";
  int steps = 10;
  double learning_rate = 1e-2, clip = 1.0;
  int threads = 1;
  bool processes = false;     ///< ranks are forked processes; needs a comm between processes. Closures run in the child
  Binding binding = {};       ///< of slots to ranks; empty: in their order
  bool validate = false;      ///< one validation after the last step, on the input of step 1'000'000
  bool fetch_logits = false;  ///< of the validation's last microbatch
  /// Changes a rank's program before it runs: seeded faults.
  std::function<void(Program&)> tamper;
  /// Called on each rank before each step.
  std::function<void(Executor&, int64_t step)> before_step;
  /// Replaces SyntheticInput: called per step.
  std::function<std::unique_ptr<InputSource>(int64_t step)> input;
  /// State to start from instead of initial weights, as `tensors` of an earlier run; first step is then `first_step`.
  const std::map<std::string, std::vector<double>>* start = nullptr;
  int64_t first_step = 1;
};

struct TrainResult {
  std::vector<double> losses, norms;
  std::vector<bool> applied;  ///< per step: whether the update ran
  double validation_loss = 0;
  std::vector<float> logits;                           ///< [microbatch of all replicas, sequence, vocabulary]
  std::map<std::string, std::vector<double>> initial;  ///< parameters before the first step, whole
  std::map<std::string, std::vector<double>>
      tensors;  ///< parameters, masters and optimizer states after the last step, whole
  std::vector<int64_t> predicted_bytes, peak_bytes;  ///< per rank
  std::string
      replicas_differ;  ///< names a tensor (or total, decision) whose copies on different ranks are not the same bits
};

/// Fails the test when anything fails.
TrainResult train(const TrainingGraph& graph, const Plan& plan, const TrainOptions& options = {});

/// Largest |a-b| / max(1, |b|) over all elements of all tensors of `b` (absolute below one, relative above); infinite
/// when one is missing.
double largest_difference(const std::map<std::string, std::vector<double>>& a,
                          const std::map<std::string, std::vector<double>>& b);
double largest_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace altiplano::test
