#pragma once
// HostMemory: the memory of a device that computes in the host's, counted to the byte. What Device::allocate, adopt and
// free promise, for every device of that kind.
#include <sys/mman.h>
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

/// Large allocations come in pages of this size where the system has them: products read matrices across their rows,
/// and with pages of 4 KiB each row of a large one needs an address translation of its own.
inline constexpr size_t kHugePage = size_t{2} << 20;

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
    const size_t page = static_cast<size_t>(bytes) < 2 * kHugePage ? 64 : kHugePage;
    const size_t rounded = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + page - 1) / page * page;
    void* memory = std::aligned_alloc(page, rounded);
    if (memory == nullptr)
      return runtime_failure("{}: the system refused {}; {} in use on this rank", device_, to_string(Bytes(bytes)),
                             to_string(allocated_));
    if (page == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);  // a wish only: small pages do as well
    std::memset(memory, 0, static_cast<size_t>(bytes));
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
