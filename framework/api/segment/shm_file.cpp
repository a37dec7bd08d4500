#include "framework/api/segment/shm_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "framework/base/units.hpp"

namespace altiplano {
namespace {

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
    return invalid_argument(
        "comm/shm needs {} in {}, has {}; enlarge it (a container: --shm-size), lower comm.chunk_bytes or name another "
        "memory file system in ALTIPLANO_SHM_DIR",
        to_string(Bytes(static_cast<int64_t>(bytes))), directory, to_string(available));
  return runtime_failure("comm/shm: reserving {} in {}: {}", to_string(Bytes(static_cast<int64_t>(bytes))), directory,
                         std::strerror(error));
}

Result<std::shared_ptr<void>> map(int file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return runtime_failure("comm/shm: mmap: {}", std::strerror(errno));
  return std::shared_ptr<void>(memory, [bytes](void* p) { munmap(p, bytes); });
}

Result<std::shared_ptr<void>> map_checked(int file, const std::string& path, const ShmAddress& expected, size_t bytes) {
  struct stat info {};
  if (fstat(file, &info) != 0 || info.st_dev != expected.device || info.st_ino != expected.inode)
    return runtime_failure(
        "comm/shm: {} is not the memory it was; its rank has ended or runs where its process is unknown", path);
  if (info.st_size != static_cast<off_t>(bytes))
    return invalid_argument("{} has {} B, this rank expects {} B; comm.chunk_bytes must be equal on all ranks", path,
                            info.st_size, bytes);
  return map(file, bytes);
}

std::string path_of(const ShmAddress& address) {
  return fmt::format("/proc/{}/fd/{}", address.process, address.file);
}

}  // namespace

std::string shm_directory() {
  const char* directory = std::getenv("ALTIPLANO_SHM_DIR");
  return directory != nullptr && *directory != '\0' ? directory : "/dev/shm";
}

Result<ShmFile> ShmFile::create(const std::string& directory, size_t bytes) {
  const int file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0)
    return invalid_argument(
        "comm/shm cannot create a segment in {}: {}; name a memory file system (tmpfs) that can be written in "
        "ALTIPLANO_SHM_DIR",
        directory, std::strerror(errno));
  ShmFile segment(file);
  ALTIPLANO_RETURN_IF_ERROR(reserve(file, directory, bytes));
  ALTIPLANO_ASSIGN(segment.memory_, map(file, bytes));
  return segment;
}

Result<ShmFile> ShmFile::create_anonymous(size_t bytes) {
  const int file = memfd_create("altiplano-arena", MFD_CLOEXEC);
  if (file < 0) return runtime_failure("comm/shm: memfd_create: {}", std::strerror(errno));
  ShmFile segment(file);
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (error != 0)
    return runtime_failure("comm/shm: reserving {} of memory: {}", to_string(Bytes(static_cast<int64_t>(bytes))),
                           std::strerror(error));
  ALTIPLANO_ASSIGN(segment.memory_, map(file, bytes));
  return segment;
}

Result<std::shared_ptr<void>> ShmFile::attach(const ShmAddress& address, size_t bytes) {
  const std::string path = path_of(address);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return runtime_failure("comm/shm cannot open {}: {}; has its rank ended, or are not all ranks on one host?", path,
                           std::strerror(errno));
  auto memory = map_checked(file, path, address, bytes);
  close(file);
  return memory;
}

std::string ShmAddress::to_string() const {
  return fmt::format("{} {} {}", device, inode, path_of(*this));
}

Result<ShmAddress> ShmAddress::parse(const std::string& text) {
  ShmAddress address;
  if (std::sscanf(text.c_str(), "%" SCNu64 " %" SCNu64 " /proc/%d/fd/%d", &address.device, &address.inode,
                  &address.process, &address.file) != 4)
    return runtime_failure("comm/shm: '{}' is no address of a segment", text);
  return address;
}

ShmAddress ShmFile::address() const {
  ShmAddress address{.process = getpid(), .file = file_};
  struct stat info {};
  if (fstat(file_, &info) == 0) {
    address.device = info.st_dev;
    address.inode = info.st_ino;
  }
  return address;
}

ShmFile::ShmFile(ShmFile&& other) noexcept : file_(other.file_), memory_(std::move(other.memory_)) {
  other.file_ = -1;
}

ShmFile::~ShmFile() {
  if (file_ >= 0) close(file_);
}

}  // namespace altiplano
