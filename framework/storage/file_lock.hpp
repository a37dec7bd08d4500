#pragma once
// FileLock: one owner at a time of something named by a file. The system drops it when the owner dies, so there are no
// stale locks; the file stays and says who had it last.
#include <string>

#include "framework/base/status.hpp"

namespace altiplano {

class FileLock {
 public:
  /// Makes the file when missing and writes `owner` and this host into it. Held by another: kInvalidArgument that names
  /// the file and its owner. On a file system without locks nobody is kept out, and `notice` says so.
  /// `key`: of the job file, that names the folder.
  static Result<FileLock> take(const std::string& path, const std::string& owner, const std::string& key = "run.dir");
  /// Whether take() would succeed now; what it would say if not. Makes nothing.
  static Status check_free(const std::string& path, const std::string& key = "run.dir");
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();
  /// Empty, or why this lock keeps nobody out.
  const std::string& notice() const { return notice_; }

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  Status lock(const std::string& path, const std::string& key, int how);
  int descriptor_ = -1;
  std::string notice_;
};

}  // namespace altiplano
