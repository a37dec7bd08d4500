// The adapter: host memory with exact accounting, calls that are complete before they return, kernels from the table.
#include <cstring>
#include <exception>

#include "@name@_kernels.hpp"
#include "framework/api/register.hpp"
#include "framework/kernels/host_memory.hpp"

namespace {

using namespace altiplano;

class @Name@Device final : public Device {
 public:
  explicit @Name@Device(const DeviceOptions& options)
      : memory_("device/@name@", physical_memory_of_rank(options.ranks_on_host)) {
    info_.name = "@name@ (host memory)";
    info_.memory = memory_.limit();
    info_.dtypes = {DType::kF32};
    info_.is_host_memory = true;
  }

  const DeviceInfo& info() const noexcept override {
    return info_;
  }

  Result<void*> allocate(int64_t bytes) noexcept override try {
    return memory_.allocate(bytes);
  } catch (const std::exception& e) {
    return runtime_failure("device/@name@: {}", e.what());
  }
  Status adopt(void* memory, int64_t bytes) noexcept override try {
    return memory_.adopt(memory, bytes);
  } catch (const std::exception& e) {
    return runtime_failure("device/@name@: {}", e.what());
  }
  void free(void* memory) noexcept override {
    memory_.free(memory);
  }
  Bytes allocated() const noexcept override {
    return memory_.allocated();
  }
  Bytes peak_allocated() const noexcept override {
    return memory_.peak();
  }

  Result<std::unique_ptr<Kernel>> make_kernel(const KernelRequest& request) noexcept override try {
    return @name@_plugin::make_kernel(request);
  } catch (const std::exception& e) {
    return runtime_failure("device/@name@: {}: {}", request.kind, e.what());
  }
  Status copy(const BoxCopy& boxes, DType dtype, const void* source, void* destination,
              bool add) noexcept override try {
    return @name@_plugin::copy_box(boxes, dtype, source, destination, add);
  } catch (const std::exception& e) {
    return runtime_failure("device/@name@: copy: {}", e.what());
  }

  Status fill_zero(void* memory, int64_t bytes) noexcept override {
    if (bytes > 0) std::memset(memory, 0, static_cast<size_t>(bytes));
    return Status::ok();
  }
  Status copy_from_host(void* destination, const void* source, int64_t bytes) noexcept override {
    if (bytes > 0) std::memcpy(destination, source, static_cast<size_t>(bytes));
    return Status::ok();
  }
  Status copy_to_host(void* destination, const void* source, int64_t bytes) noexcept override {
    if (bytes > 0) std::memcpy(destination, source, static_cast<size_t>(bytes));
    return Status::ok();
  }
  Status synchronize(StreamKind) noexcept override {
    return Status::ok();
  }
  Result<Event> record(StreamKind) noexcept override {
    return Event{};
  }
  Status wait(StreamKind, Event) noexcept override {
    return Status::ok();
  }

 private:
  DeviceInfo info_;
  HostMemory memory_;
};

class @Name@Plugin final : public DeviceBackend {
 public:
  Result<std::unique_ptr<Device>> open(const DeviceOptions& options) noexcept override try {
    return std::unique_ptr<Device>(std::make_unique<@Name@Device>(options));
  } catch (const std::exception& e) {
    return runtime_failure("device/@name@: {}", e.what());
  }
};

}  // namespace

ALTIPLANO_REGISTER_PLUGIN(altiplano::DeviceBackend, @Name@Plugin, ALTIPLANO_PLUGIN_NAME, ALTIPLANO_PLUGIN_VERSION, 0,
                          "host memory and a first few kernels in f32")
