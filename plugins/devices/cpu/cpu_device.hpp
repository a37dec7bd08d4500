#pragma once
// The CPU as one rank's device: calls complete before they return, so every event is a done event.
#include "framework/kernels/host_memory.hpp"
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

class CpuDevice final : public Device {
 public:
  /// May throw (oneDNN engine).
  explicit CpuDevice(const DeviceOptions& options);

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<void*> allocate(int64_t bytes) noexcept override;
  Status adopt(void* memory, int64_t bytes) noexcept override;
  void free(void* memory) noexcept override { memory_.free(memory); }
  Bytes allocated() const noexcept override { return memory_.allocated(); }
  Bytes peak_allocated() const noexcept override { return memory_.peak(); }
  Result<KernelForms> forms(const KernelRequest& request) noexcept override;
  Result<std::unique_ptr<Kernel>> make_kernel(const KernelRequest& request) noexcept override;
  Status copy(const BoxCopy& boxes, DType dtype, const void* source, void* destination, bool add) noexcept override;
  Status fill_zero(void* memory, int64_t bytes) noexcept override;
  Status copy_from_host(void* destination, const void* source, int64_t bytes) noexcept override;
  Status copy_to_host(void* destination, const void* source, int64_t bytes) noexcept override;
  Status synchronize(StreamKind) noexcept override { return Status::ok(); }
  Result<Event> record(StreamKind) noexcept override { return Event{}; }
  Status wait(StreamKind, Event) noexcept override { return Status::ok(); }

 private:
  DeviceInfo info_;
  CpuContext context_;
  HostMemory memory_;
};

}  // namespace altiplano::cpu
