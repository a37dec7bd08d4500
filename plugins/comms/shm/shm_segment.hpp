#pragma once
// Files of shared memory: made, reserved, mapped, unlinked, and those of dead jobs removed.
#include <memory>
#include <string>

#include "framework/base/status.hpp"

namespace altiplano {

/// Where segments lie: $ALTIPLANO_SHM_DIR or /dev/shm.
std::string shm_directory();

/// A segment under its name. The creator's lock on it is held as long as this object lives.
class ShmSegment {
 public:
  /// A new, zeroed segment of `bytes`, all of them reserved. Not enough room: names what is needed and what there is.
  static Result<ShmSegment> create(const std::string& directory, const std::string& job_id, size_t bytes);
  /// Maps an existing one, which must have exactly `bytes`.
  static Result<std::shared_ptr<void>> attach(const std::string& path, size_t bytes);

  ShmSegment(ShmSegment&& other) noexcept;
  ShmSegment& operator=(ShmSegment&& other) = delete;
  ~ShmSegment();  ///< removes the name, if it is still there; the memory lives on while mapped

  const std::string& path() const { return path_; }
  const std::shared_ptr<void>& memory() const { return memory_; }

 private:
  ShmSegment(std::string path, int file) : path_(std::move(path)), file_(file) {}
  std::string path_;
  int file_ = -1;
  std::shared_ptr<void> memory_;
};

/// Removes segments of this user whose creator is dead; returns how many.
int remove_stale_segments(const std::string& directory);

}  // namespace altiplano
