#include "framework/api/segment/shm_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstddef>
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

constexpr size_t kLargePage = size_t{2} << 20;  // borders of memory that may lie in large pages

/// Room for `bytes` that begins on a large page's border; nullptr: anywhere.
void* large_page_room(size_t bytes) {
  if (bytes < kLargePage) return nullptr;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), used = (bytes + page - 1) / page * page;
  void* const room = mmap(nullptr, used + kLargePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(room);
  const size_t before = (kLargePage - reinterpret_cast<uintptr_t>(room) % kLargePage) % kLargePage;
  if (before > 0) munmap(first, before);
  munmap(first + before + used, kLargePage - before);
  return first + before;
}

Result<std::shared_ptr<void>> map(int file, size_t bytes) {
  void* const room = large_page_room(bytes);
  void* const memory =
      mmap(room, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (room != nullptr ? MAP_FIXED : 0), file, 0);
  if (memory == MAP_FAILED) return runtime_failure("comm/shm: mmap: {}", std::strerror(errno));
  return std::shared_ptr<void>(memory, [bytes](void* p) { munmap(p, bytes); });
}

int reserve_range(int file, size_t begin, size_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(file, static_cast<off_t>(begin), static_cast<off_t>(bytes));
  return error;
}

/// Asks the kernel for large pages, piece by piece, as long as that takes less time than small ones would: where memory
/// is fragmented the kernel moves other pages first, and may take a second for what takes a hundredth of it elsewhere.
void collapse_pages(std::byte* memory, size_t bytes) {
#ifdef MADV_COLLAPSE
  constexpr int kCollapse = MADV_COLLAPSE;
#else
  constexpr int kCollapse = 25;
#endif
  constexpr size_t kPiece = 4 * kLargePage;
  constexpr std::chrono::milliseconds kOfPiece(5), kFree(20);  // small pages: 5 ms to reserve and touch a piece
  const auto begin = std::chrono::steady_clock::now();
  auto most = kFree;
  for (size_t at = 0; at < bytes; at += kPiece, most += kOfPiece) {
    if (madvise(memory + at, std::min(kPiece, bytes - at), kCollapse) != 0) return;
    if (std::chrono::steady_clock::now() - begin > most) return;
  }
}

/// Brings the memory of a file into large pages, also where the host's setting for shared memory is "never": an arena
/// is there for the whole run. Of each large page one small page is reserved first, and the rest comes with it, zeroed;
/// that takes a tenth of what reserving and touching small pages takes. A kernel older than 6.1 and a host without free
/// large pages leave it as it is. 0, or the error of a reservation.
int use_large_pages(int file, void* memory, size_t bytes) {
  const size_t whole = bytes / kLargePage * kLargePage;
  for (size_t at = 0; at < whole; at += kLargePage)
    if (const int error = reserve_range(file, at, 1); error != 0) return error;
  collapse_pages(static_cast<std::byte*>(memory), whole);
  return 0;
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
  const auto refused = [bytes](int error) {
    return runtime_failure("comm/shm: reserving {} of memory: {}", to_string(Bytes(static_cast<int64_t>(bytes))),
                           std::strerror(error));
  };
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) return refused(errno);
  ALTIPLANO_ASSIGN(segment.memory_, map(file, bytes));
  if (const int error = use_large_pages(file, segment.memory_.get(), bytes); error != 0) return refused(error);
  if (const int error = reserve_range(file, 0, bytes); error != 0) return refused(error);
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
