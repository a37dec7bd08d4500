// The adapter: host memory with exact accounting, calls that are complete before they return, kernels from the table.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>

#include "@name@_kernels.hpp"
#include "framework/api/register.hpp"

namespace {

using namespace altiplano;

class @Name@Device final : public Device {
 public:
  explicit @Name@Device(const DeviceOptions& options) {
    info_.name = "@name@ (host memory)";
    const int64_t host = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    info_.memory = Bytes(host / std::max(1, options.ranks_on_host));
    info_.dtypes = {DType::kF32};
    info_.is_host_memory = true;
  }
  ~@Name@Device() override {
    for (const auto& [memory, bytes] : sizes_) std::free(memory);
  }

  const DeviceInfo& info() const noexcept override { return info_; }

  Result<void*> allocate(int64_t bytes) noexcept override try {
    const size_t rounded = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + 63) / 64 * 64;
    void* memory = allocated_ + Bytes(bytes) > info_.memory ? nullptr : std::aligned_alloc(64, rounded);
    if (memory == nullptr)
      return runtime_failure("device/@name@: {} more than the {} in use of {}", to_string(Bytes(bytes)),
                             to_string(allocated_), to_string(info_.memory));
    std::memset(memory, 0, rounded);
    sizes_[memory] = Bytes(bytes);
    allocated_ += Bytes(bytes);
    peak_ = std::max(peak_, allocated_);
    return memory;
  } catch (const std::exception& e) {
    return runtime_failure("device/@name@: {}", e.what());
  }
  void free(void* memory) noexcept override {
    const auto at = sizes_.find(memory);
    if (at == sizes_.end()) return;
    allocated_ = allocated_ - at->second;
    sizes_.erase(at);
    std::free(memory);
  }
  Bytes allocated() const noexcept override { return allocated_; }
  Bytes peak_allocated() const noexcept override { return peak_; }

  Result<std::unique_ptr<Kernel>> make_kernel(const KernelRequest& request) noexcept override try {
    return @name@_plugin::make_kernel(request);
  } catch (const std::exception& e) {
    return runtime_failure("device/@name@: {}: {}", request.kind, e.what());
  }
  Status copy(const BoxCopy& boxes, DType dtype, const void* source, void* destination, bool add) noexcept override
      try {
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
  Status synchronize(StreamKind) noexcept override { return Status::ok(); }
  Result<Event> record(StreamKind) noexcept override { return Event{}; }
  Status wait(StreamKind, Event) noexcept override { return Status::ok(); }

 private:
  DeviceInfo info_;
  std::map<void*, Bytes> sizes_;
  Bytes allocated_, peak_;
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
