#pragma once
// The job's device and the kernels made on it: opened while planning, because without the scratch that kernels take the
// predicted peak would miss what they work in, and used by the rank that runs afterwards, so that nothing is made
// twice.
#include <memory>

#include "framework/options/option.hpp"
#include "framework/program/lowering.hpp"
#include "framework/runtime/kernel_cache.hpp"

namespace altiplano {

class JobDevice {
 public:
  /// Opens device/<device.kind>. `threads`: for computing, where device.threads is auto; 0: the device's own choice.
  static Result<std::unique_ptr<JobDevice>> open(const Options& options, int num_ranks, int threads, uint64_t seed);
  /// Another one of the same threads, with memory of its own.
  Result<std::unique_ptr<Device>> open_another() const;
  /// For lower() and estimate_plan(); holds this object. Refuses ops and types that the device does not know.
  LoweringOptions lowering();
  /// For what is only looked at: op kinds that the device has no kernel for take no scratch, instead of being refused.
  void pass_over_missing_kernels() { passes_over_missing_ = true; }
  /// Of the first such kind: "device/cpu has no kernel for op kind 'conv2d'". Empty: none was met.
  const std::string& missing_kernel() const { return missing_kernel_; }
  Device& device() { return *device_; }
  KernelCache& kernels() { return *kernels_; }
  /// "AMD EPYC, family 25, model 1; cpu (avx2, oneDNN 2.6.3); 2 threads": what a kernel table is good for.
  std::string machine() const;

 private:
  DeviceBackend* backend_ = nullptr;
  DeviceOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<KernelCache> kernels_;
  bool passes_over_missing_ = false;
  std::string missing_kernel_;
};

}  // namespace altiplano
