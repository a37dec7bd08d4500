#pragma once
// The scratch that the job's device takes for its kernels, asked for while planning: without it the predicted peak
// would miss what the kernels work in. Nothing is run.
#include <memory>

#include "framework/options/option.hpp"
#include "framework/program/lowering.hpp"
#include "framework/runtime/kernel_cache.hpp"

namespace altiplano {

class PlanningDevice {
 public:
  /// Opens device/<device.kind>.
  static Result<std::unique_ptr<PlanningDevice>> open(const Options& options, int num_ranks, uint64_t seed);
  /// For estimate_plan; holds this object. Refuses ops and types that the device does not know.
  LoweringOptions lowering();

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<KernelCache> kernels_;
};

}  // namespace altiplano
