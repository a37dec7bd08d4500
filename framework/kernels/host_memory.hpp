#pragma once
// HostMemory: the memory of a device that computes in the host's, counted to the byte. What Device::allocate, adopt and
// free promise, for every device of that kind.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>

#include "framework/base/status.hpp"
#include "framework/base/units.hpp"

namespace altiplano {

/// An equal share of the host's physical memory.
inline Bytes physical_memory_of_rank(int ranks_on_host) {
  return Bytes(static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / std::max(1, ranks_on_host));
}

class HostMemory {
 public:
  /// `device` is for messages ("device/cpu").
  HostMemory(std::string device, Bytes limit) : device_(std::move(device)), limit_(limit) {}
  ~HostMemory() {
    for (const auto& [memory, part] : parts_)
      if (part.is_own) std::free(memory);
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  Result<void*> allocate(int64_t bytes) {
    ALTIPLANO_RETURN_IF_ERROR(check(bytes));
    const size_t rounded = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + 63) / 64 * 64;
    void* memory = std::aligned_alloc(64, rounded);
    if (memory == nullptr)
      return runtime_failure("{}: the system refused {}; {} in use on this rank", device_, to_string(Bytes(bytes)),
                             to_string(allocated_));
    std::memset(memory, 0, rounded);
    count(memory, {bytes, true});
    return memory;
  }

  Status adopt(void* memory, int64_t bytes) {
    ALTIPLANO_RETURN_IF_ERROR(check(bytes));
    count(memory, {bytes, false});
    return Status::ok();
  }

  void free(void* memory) {
    if (memory == nullptr) return;
    const auto found = parts_.find(memory);
    ALTIPLANO_ASSERT(found != parts_.end(), "{}: free of memory it does not have", device_);
    allocated_ = allocated_ - Bytes(found->second.bytes);
    if (found->second.is_own) std::free(memory);
    parts_.erase(found);
  }

  Bytes limit() const { return limit_; }
  Bytes allocated() const { return allocated_; }
  Bytes peak() const { return peak_; }

 private:
  struct Part {
    int64_t bytes;
    bool is_own;
  };
  Status check(int64_t bytes) const {
    if (bytes < 0) return invalid_argument("{}: {} B cannot be allocated", device_, bytes);
    if (bytes <= limit_.value - allocated_.value) return Status::ok();
    return runtime_failure("{}: out of memory: {} asked, {} of {} already in use on this rank", device_,
                           to_string(Bytes(bytes)), to_string(allocated_), to_string(limit_));
  }
  void count(void* memory, Part part) {
    parts_.emplace(memory, part);
    allocated_ += Bytes(part.bytes);
    peak_ = std::max(peak_, allocated_);
  }

  std::string device_;
  Bytes limit_;
  std::unordered_map<void*, Part> parts_;
  Bytes allocated_, peak_;
};

}  // namespace altiplano
