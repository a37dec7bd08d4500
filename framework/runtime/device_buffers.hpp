#pragma once
// Memory of a device for trying kernels out, beside a program's arenas.
#include <vector>

#include "framework/api/device.hpp"

namespace altiplano {

/// Of an operand's local box.
inline int64_t bytes_of(const OperandLayout& operand) {
  return num_elements(operand.extents) * size_of(operand.dtype);
}

/// Buffers of a device for as long as the object lives; the device must outlive it.
class DeviceBuffers {
 public:
  explicit DeviceBuffers(Device& device) : device_(device) {}
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;
  ~DeviceBuffers() {
    for (void* buffer : buffers_) device_.free(buffer);
  }

  /// Fails as Device::allocate does.
  Result<void*> add(int64_t bytes) {
    ALTIPLANO_ASSIGN(void* buffer, device_.allocate(bytes));
    buffers_.push_back(buffer);
    return buffer;
  }

 private:
  Device& device_;
  std::vector<void*> buffers_;
};

}  // namespace altiplano
