// The adapter: memory with accounting, strided box copies, kernels from the table. Every call completes before it
// returns.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <unordered_map>

#include "framework/api/register.hpp"
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
  explicit ReferenceDevice(const DeviceOptions& options) {
    info_.name = "reference (plain loops)";
    info_.threads = 1;
    info_.memory = Bytes(static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) /
                         std::max(1, options.ranks_on_host));
    info_.dtypes = {DType::kF64, DType::kF32};
    info_.is_host_memory = true;
  }
  ~ReferenceDevice() override {
    for (auto [memory, bytes] : sizes_) std::free(memory);
  }

  const DeviceInfo& info() const noexcept override { return info_; }

  Result<void*> allocate(int64_t bytes) noexcept override {
    if (allocated_ + Bytes(bytes) > info_.memory) return out_of_memory(bytes);
    size_t rounded = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + 63) / 64 * 64;
    void* memory = std::aligned_alloc(64, rounded);
    if (!memory) return out_of_memory(bytes);
    std::memset(memory, 0, rounded);
    sizes_[memory] = bytes;
    allocated_ += Bytes(bytes);
    peak_ = std::max(peak_, allocated_);
    return memory;
  }

  void free(void* memory) noexcept override {
    if (!memory) return;
    auto found = sizes_.find(memory);
    ALTIPLANO_ASSERT(found != sizes_.end(), "free of memory this device did not allocate");
    allocated_ = allocated_ - Bytes(found->second);
    sizes_.erase(found);
    std::free(memory);
  }

  Bytes allocated() const noexcept override { return allocated_; }
  Bytes peak_allocated() const noexcept override { return peak_; }

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
  Status out_of_memory(int64_t bytes) const {
    return runtime_failure("device/reference: {} more than the {} left of {}", to_string(Bytes(bytes)),
                           to_string(info_.memory - allocated_), to_string(info_.memory));
  }

  DeviceInfo info_;
  std::unordered_map<void*, int64_t> sizes_;
  Bytes allocated_, peak_;
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
