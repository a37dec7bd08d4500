#pragma once
// Whether the sharding rule of an op is true: for a strategy, the op runs on the local boxes of every device, and the
// boxes put together (copied, summed, maximised as the derived specs say) must equal the unsharded op.
#include <string>
#include <vector>

#include "framework/conformance/interpreter.hpp"
#include "framework/sharding/rule.hpp"

namespace altiplano::conformance {

/// One use of an op on whole tensors, as its sample says.
struct OpUse {
  std::string kind;
  std::vector<ValueType> inputs;
  Attributes attributes;
};

/// The use with its data and its result.
struct WholeOp {
  KernelRequest request;
  ShardingRule rule;
  std::vector<Tensor> inputs, outputs;
};

/// Shapes and rule by the op's definition, the result by `kernels`.
Result<WholeOp> run_whole(const Kernels& kernels, const OpUse& use, std::vector<Tensor> inputs,
                          const StepScalars& step);

/// Largest error (relative to elements above 1) of any output on any replica when the op runs split as the strategy
/// says.
Result<double> strategy_error(const Kernels& kernels, const WholeOp& whole, const Strategy& strategy,
                              const MeshShape& mesh, const StepScalars& step);

/// (data 2), (data 3), (tensor 4), (data 2, tensor 2).
std::vector<MeshShape> small_meshes();

/// Largest error of two tensors of equal size, relative to elements above 1; infinite when one has a NaN.
double largest_error(const Tensor& a, const Tensor& b);

}  // namespace altiplano::conformance
