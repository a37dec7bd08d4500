#include "plugins/comms/shm/shm_segment.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "framework/base/units.hpp"

namespace altiplano {
namespace {

std::string name_prefix() {
  return fmt::format("altiplano-{}-", geteuid());
}

uint64_t random_number() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) number = static_cast<uint64_t>(getpid());
  return number;
}

Bytes free_bytes(const std::string& directory) {
  struct statvfs info {};
  if (statvfs(directory.c_str(), &info) != 0) return Bytes(0);
  return Bytes(static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize));
}

Status reserve(int file, const std::string& directory, size_t bytes) {
  const Bytes available = free_bytes(directory);
  const int error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (error == 0) return Status::ok();
  if (error == ENOSPC || error == EFBIG || error == ENOMEM)
    return runtime_failure(
        "comm/shm needs {} in {}, has {}; enlarge it (a container: --shm-size), lower comm.chunk_bytes or name another "
        "memory file "
        "system in ALTIPLANO_SHM_DIR",
        to_string(Bytes(static_cast<int64_t>(bytes))), directory, to_string(available));
  return runtime_failure("comm/shm: reserving {} in {}: {}", to_string(Bytes(static_cast<int64_t>(bytes))), directory,
                         std::strerror(error));
}

Result<std::shared_ptr<void>> map(int file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return runtime_failure("comm/shm: mmap: {}", std::strerror(errno));
  return std::shared_ptr<void>(memory, [bytes](void* p) { munmap(p, bytes); });
}

/// A new file that we hold the lock of; -1 when a cleaner of another job took it for stale before it was locked.
int create_locked(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  struct stat info {};
  if (flock(file, LOCK_EX | LOCK_NB) == 0 && fstat(file, &info) == 0 && info.st_nlink > 0) return file;
  const int saved = errno;
  unlink(path.c_str());
  close(file);
  errno = saved;
  return -1;
}

}  // namespace

std::string shm_directory() {
  const char* directory = std::getenv("ALTIPLANO_SHM_DIR");
  return directory != nullptr && *directory != '\0' ? directory : "/dev/shm";
}

Result<ShmSegment> ShmSegment::create(const std::string& directory, const std::string& job_id, size_t bytes) {
  constexpr int kAttempts = 10;
  int file = -1;
  std::string path;
  for (int attempt = 0; attempt < kAttempts && file < 0; ++attempt) {
    path = fmt::format("{}/{}{}-{:016x}", directory, name_prefix(), job_id, random_number());
    file = create_locked(path);
  }
  if (file < 0) return runtime_failure("comm/shm cannot create a segment in {}: {}", directory, std::strerror(errno));
  ShmSegment segment(path, file);
  ALTIPLANO_RETURN_IF_ERROR(reserve(file, directory, bytes));
  ALTIPLANO_ASSIGN(segment.memory_, map(file, bytes));
  return segment;
}

Result<std::shared_ptr<void>> ShmSegment::attach(const std::string& path, size_t bytes) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return runtime_failure("comm/shm cannot open {}: {}; are all ranks on one host?", path, std::strerror(errno));
  struct stat info {};
  const bool fits = fstat(file, &info) == 0 && info.st_size == static_cast<off_t>(bytes);
  auto memory = fits ? map(file, bytes)
                     : Result<std::shared_ptr<void>>(invalid_argument(
                           "{} has {} B, this rank expects {} B; comm.chunk_bytes must be equal on all ranks", path,
                           info.st_size, bytes));
  close(file);
  return memory;
}

ShmSegment::ShmSegment(ShmSegment&& other) noexcept
    : path_(std::move(other.path_)), file_(other.file_), memory_(std::move(other.memory_)) {
  other.file_ = -1;
}

ShmSegment::~ShmSegment() {
  if (file_ < 0) return;
  unlink(path_.c_str());
  close(file_);
}

int remove_stale_segments(const std::string& directory) {
  int removed = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().filename().string().rfind(name_prefix(), 0) != 0) continue;
    const int file = open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0 && unlink(entry.path().c_str()) == 0) ++removed;
    close(file);
  }
  return removed;
}

}  // namespace altiplano
