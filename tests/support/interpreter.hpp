#pragma once
// Runs a Graph op by op on one Device with whole boxes: no plan, no program. Values are host vectors of double, rounded
// to their type on the device. The independent way to the numbers that plans must reproduce.
#include <map>
#include <string>
#include <vector>

#include "framework/conformance/interpreter.hpp"

namespace altiplano::test {

using conformance::initial_values;
using conformance::RunOptions;
using conformance::Values;
using conformance::whole_layout;

/// Opens device/<name> through its plugin.
std::unique_ptr<Device> open_device(const std::string& name = "reference");

/// Runs one kernel on local boxes: data in and out as doubles in the operands' order. Outputs that alias inputs are
/// separate here.
std::vector<std::vector<double>> run_kernel(Device& device, const KernelRequest& request,
                                            const std::vector<std::vector<double>>& inputs,
                                            const StepScalars& step = {}, int64_t batch_offset = 0);

/// Runs the ops of `phases` in order; `values` must hold what they read from outside. Returns it with every output
/// added.
Values run_graph(Device& device, const Graph& graph, Values values, const RunOptions& options = {});

struct StepResult {
  double loss_sum = 0, token_count = 0, gradient_norm = 0;
};
/// One training step on `state` (parameters, optimizer states; plus `batch`: the inputs): forward, backward, sum of
/// contributions, clipping to `max_norm` (0: none), update. `step` counts from 1.
StepResult train_step(Device& device, const TrainingGraph& training, Values& state, const Values& batch, int64_t step,
                      double learning_rate, double max_norm = 0);

/// Token ids and labels of a batch: pure in `seed`. Every `ignore_every`-th label is -1 (0: none).
Values random_batch(const TrainingGraph& training, int64_t vocabulary, uint64_t seed, int ignore_every = 0);

}  // namespace altiplano::test
