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
class ShmFile {
 public:
  /// A new, zeroed segment of `bytes`, all of them reserved. Not enough room: kInvalidArgument that names what is
  /// needed and what there is.
  static Result<ShmFile> create(const std::string& directory, size_t bytes);
  /// The same in memory of no file system, whose size no mount limits. kRuntimeFailure when memory is short.
  static Result<ShmFile> create_anonymous(size_t bytes);
  /// Maps an existing one by its address; it must have exactly `bytes`.
  static Result<std::shared_ptr<void>> attach(const ShmAddress& address, size_t bytes);

  ShmFile(ShmFile&& other) noexcept;
  ShmFile& operator=(ShmFile&& other) = delete;
  ~ShmFile();  ///< ends the address; the memory lives on while mapped

  ShmAddress address() const;
  const std::shared_ptr<void>& memory() const { return memory_; }

 private:
  explicit ShmFile(int file) : file_(file) {}
  int file_ = -1;
  std::shared_ptr<void> memory_;
};

}  // namespace altiplano
