#pragma once
// runtime/ (L5): from a job to its end: executor, training loop, data, metrics. May include L0-L4, config/, checkpoint/
// and launch/; decides nothing that plan or program have decided.
//
// KernelCache: the kernels of a program, made once; equal requests (layers that are isomorphic) share one. Lowering
// asks it for scratch sizes, the executor for the kernels.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/device.hpp"
#include "framework/api/op.hpp"
#include "framework/cost/kernel_table.hpp"
#include "framework/program/program.hpp"

namespace altiplano {

class KernelCache {
 public:
  /// `extensions` make kernels of kinds that the device does not know. All must outlive the cache.
  KernelCache(Device& device, std::string device_kind, std::vector<const OpExtension*> extensions, uint64_t seed)
      : device_(device), device_kind_(std::move(device_kind)), extensions_(std::move(extensions)), seed_(seed) {}

  /// From now on kernels are made in the forms of the table. Those made before in another form are gone.
  void choose(const KernelTable& table);
  Result<Kernel*> get(const Program& program, const ComputeInstruction& instruction);
  size_t size() const { return kernels_.size(); }

 private:
  struct Made {
    std::unique_ptr<Kernel> kernel;
    std::string shape, form;  ///< shape is empty where there are no forms
  };
  Result<Made> make(KernelRequest request);
  Device& device_;
  std::string device_kind_;
  std::vector<const OpExtension*> extensions_;
  uint64_t seed_;
  KernelTable table_;
  std::map<std::string, Made> kernels_;
};

/// What a device is asked for to run this instruction.
KernelRequest kernel_request(const Program& program, const ComputeInstruction& instruction, uint64_t seed);

}  // namespace altiplano
