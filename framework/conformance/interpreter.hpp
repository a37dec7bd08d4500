#pragma once
// Runs a Graph op by op on one Device with whole boxes: no plan, no program. The independent way to the numbers that
// plans must reproduce, for the suites of ops, devices and models and for tests.
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "framework/api/device.hpp"
#include "framework/graph/training_graph.hpp"

namespace altiplano::conformance {

/// Elements of any type as doubles, row-major; rounded to their type on the device.
using Tensor = std::vector<double>;
using Values = std::map<ValueId, Tensor>;

/// Where kernels come from and the memory they work on.
struct Kernels {
  Device* device = nullptr;
  std::function<Result<std::unique_ptr<Kernel>>(const KernelRequest&)> make;
};
Kernels kernels_of(Device& device);

struct RunOptions {
  StepScalars step = {};
  uint64_t seed = 0;
  std::vector<Phase> phases = {Phase::kForward, Phase::kBackward};
};

/// Layout of a whole tensor (dim 0 is no batch dim to anybody here).
OperandLayout whole_layout(DType dtype, const Shape& shape);

/// One kernel on local boxes: data in and out in the operands' order. Outputs that alias inputs are separate here.
Result<std::vector<Tensor>> run_kernel(const Kernels& kernels, const KernelRequest& request,
                                       const std::vector<Tensor>& inputs, const StepScalars& step = {},
                                       int64_t batch_offset = 0);

/// Runs the ops of `phases` in order; `values` must hold what they read from outside. Returns it with every output
/// added.
Result<Values> run_graph(const Kernels& kernels, const Graph& graph, Values values, const RunOptions& options = {});

/// Parameters and optimizer states as they start, rounded to their types.
Values initial_values(const TrainingGraph& training);

}  // namespace altiplano::conformance
