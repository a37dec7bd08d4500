// The adapter: memory with accounting, strided box copies, kernels from the table. Every call completes before it
// returns.
#include <cstring>
#include <exception>

#include "framework/api/register.hpp"
#include "framework/kernels/host_memory.hpp"
#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

/// Offset of the part's first element in a buffer that holds `held`.
int64_t offset_of(const Box& held, const Box& part) {
  Index strides = strides_of(held.extents);
  int64_t offset = 0;
  for (size_t d = 0; d < part.origin.size(); ++d) offset += (part.origin[d] - held.origin[d]) * strides[d];
  return offset;
}

template <typename T>
void copy_box(const BoxCopy& boxes, const void* source, void* destination, bool add) {
  const T* from = static_cast<const T*>(source) + offset_of(boxes.source, boxes.part);
  T* to = static_cast<T*>(destination) + offset_of(boxes.destination, boxes.part);
  Walk<2> walk(boxes.part.extents, {strides_of(boxes.source.extents), strides_of(boxes.destination.extents)});
  for (; !walk.done(); walk.next()) {
    T& target = to[walk.offset(1)];
    target = add ? static_cast<T>(target + from[walk.offset(0)]) : from[walk.offset(0)];
  }
}

class ReferenceDevice : public Device {
 public:
  explicit ReferenceDevice(const DeviceOptions& options)
      : memory_("device/reference", physical_memory_of_rank(options.ranks_on_host)) {
    info_.name = "reference (plain loops)";
    info_.threads = 1;
    info_.memory = memory_.limit();
    info_.dtypes = {DType::kF64, DType::kF32};
    info_.is_host_memory = true;
  }
  const DeviceInfo& info() const noexcept override { return info_; }

  Result<void*> allocate(int64_t bytes) noexcept override { return memory_.allocate(bytes); }
  Status adopt(void* memory, int64_t bytes) noexcept override { return memory_.adopt(memory, bytes); }
  void free(void* memory) noexcept override { memory_.free(memory); }
  Bytes allocated() const noexcept override { return memory_.allocated(); }
  Bytes peak_allocated() const noexcept override { return memory_.peak(); }

  Result<std::unique_ptr<Kernel>> make_kernel(const KernelRequest& request) noexcept override {
    try {
      return make_reference_kernel(request);
    } catch (const std::exception& error) {
      return runtime_failure("device/reference: {}: {}", request.kind, error.what());
    }
  }

  Status copy(const BoxCopy& boxes, DType dtype, const void* source, void* destination, bool add) noexcept override {
    if (!boxes.part.is_empty() && (!boxes.source.contains(boxes.part) || !boxes.destination.contains(boxes.part)))
      return invalid_argument("device/reference: copy of {} from {} to {}: the part is not inside both",
                              boxes.part.to_string(), boxes.source.to_string(), boxes.destination.to_string());
    switch (dtype) {
      case DType::kF64:
        copy_box<double>(boxes, source, destination, add);
        return Status::ok();
      case DType::kF32:
        copy_box<float>(boxes, source, destination, add);
        return Status::ok();
      case DType::kI32:
        copy_box<int32_t>(boxes, source, destination, add);
        return Status::ok();
      case DType::kI64:
        copy_box<int64_t>(boxes, source, destination, add);
        return Status::ok();
      case DType::kBF16:
        break;
    }
    return invalid_argument("device/reference: copies no {}", to_string(dtype));
  }

  Status fill_zero(void* memory, int64_t bytes) noexcept override {
    if (bytes > 0) std::memset(memory, 0, static_cast<size_t>(bytes));  // nothing may be at no address
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
  HostMemory memory_;
};

class ReferenceBackend : public DeviceBackend {
 public:
  Result<std::unique_ptr<Device>> open(const DeviceOptions& options) noexcept override {
    return std::unique_ptr<Device>(std::make_unique<ReferenceDevice>(options));
  }
};

}  // namespace
}  // namespace altiplano::reference

ALTIPLANO_REGISTER_PLUGIN(altiplano::DeviceBackend, altiplano::reference::ReferenceBackend, "device/reference",
                          ALTIPLANO_PLUGIN_VERSION, 0, "plain loops in f64 and f32: the oracle")
