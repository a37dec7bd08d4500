#pragma once
// Files of shared memory: made, reserved, mapped. They never have a name, so that no death of any process at any moment
// leaves one behind: the memory is gone with the last process that maps it.
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/status.hpp"

namespace altiplano {

/// Where segments lie: $ALTIPLANO_SHM_DIR or /dev/shm.
std::string shm_directory();

/// Where a file of shared memory can be opened while its creator holds it.
struct ShmAddress {
  uint64_t device = 0, inode = 0;  ///< tell that the file is still the creator's
  int process = 0, file = 0;

  std::string to_string() const;  ///< "<device> <inode> /proc/<process>/fd/<file>"
  static Result<ShmAddress> parse(const std::string& text);
};

/// A segment and the creator's hold of it, by which others can map it.
class ShmSegment {
 public:
  /// A new, zeroed segment of `bytes`, all of them reserved. Not enough room: kInvalidArgument that names what is
  /// needed and what there is.
  static Result<ShmSegment> create(const std::string& directory, size_t bytes);
  /// The same in memory of no file system, whose size no mount limits. kRuntimeFailure when memory is short.
  static Result<ShmSegment> create_anonymous(size_t bytes);
  /// Maps an existing one by its address; it must have exactly `bytes`.
  static Result<std::shared_ptr<void>> attach(const ShmAddress& address, size_t bytes);

  ShmSegment(ShmSegment&& other) noexcept;
  ShmSegment& operator=(ShmSegment&& other) = delete;
  ~ShmSegment();  ///< ends the address; the memory lives on while mapped

  ShmAddress address() const;
  const std::shared_ptr<void>& memory() const { return memory_; }

 private:
  explicit ShmSegment(int file) : file_(file) {}
  int file_ = -1;
  std::shared_ptr<void> memory_;
};

}  // namespace altiplano
