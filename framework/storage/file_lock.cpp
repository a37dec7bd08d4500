#include "framework/storage/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "framework/base/text.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {

namespace {
constexpr int kTries = 16;
constexpr std::chrono::milliseconds kPause{50};

/// What file systems answer that have no locks, or whose lock server is away (NFS, Lustre without -o flock, DVS).
bool means_no_locks(int number) {
  constexpr int kNotSupported = 524;  // the kernel's ENOTSUPP, which has no name here
  return number == ENOLCK || number == EOPNOTSUPP || number == ENOSYS || number == kNotSupported;
}

}  // namespace

Status FileLock::lock(const std::string& path, const std::string& key, int how) {
  int taken = ::flock(descriptor_, how | LOCK_NB);
  // A job that was killed a moment ago may still be going down.
  for (int i = 0; i < kTries && taken != 0 && errno == EWOULDBLOCK; ++i) {
    std::this_thread::sleep_for(kPause);
    taken = ::flock(descriptor_, how | LOCK_NB);
  }
  if (taken == 0) return Status::ok();
  if (means_no_locks(errno)) {
    notice_ = fmt::format("{}: the file system has no locks ({}); nothing keeps a second job out of this folder", path,
                          std::strerror(errno));
    return Status::ok();
  }
  if (errno != EWOULDBLOCK) return runtime_failure("{}: cannot be locked: {}", path, std::strerror(errno));
  auto held_by = read_file(path);
  return invalid_argument("{}: another job is at work here: {}; wait for its end or take another {}", path,
                          held_by.is_ok() ? trim(*held_by) : "unknown", key);
}

Result<FileLock> FileLock::take(const std::string& path, const std::string& owner, const std::string& key) {
  FileLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.descriptor_ < 0) return invalid_argument("{}: cannot be written: {}", path, std::strerror(errno));
  ALTIPLANO_RETURN_IF_ERROR(lock.lock(path, key, LOCK_EX));
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  const std::string text = fmt::format("host {}, {}\n", host, owner);
  if (::ftruncate(lock.descriptor_, 0) != 0 || ::pwrite(lock.descriptor_, text.data(), text.size(), 0) < 0)
    return runtime_failure("{}: cannot be written: {}", path, std::strerror(errno));
  return lock;
}

Status FileLock::check_free(const std::string& path, const std::string& key) {
  FileLock lock(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (lock.descriptor_ < 0) return Status::ok();  // none has been taken, or take() says what is wrong
  return lock.lock(path, key, LOCK_SH);           // does not stand in the way of others who only look
}

FileLock::FileLock(FileLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), notice_(std::move(other.notice_)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(notice_, other.notice_);
  return *this;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace altiplano
