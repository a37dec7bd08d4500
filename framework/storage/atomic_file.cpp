#include "framework/storage/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace altiplano {
namespace {

namespace fs = std::filesystem;

/// An open file descriptor, closed on the way out.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Status failed(const std::string& path, const char* what) {
  return runtime_failure("{}: cannot be {}: {}", path, what, std::strerror(errno));
}

std::string parent_of(const std::string& path) {
  std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Status sync(const std::string& path, int flags) {
  Descriptor file(path, flags);
  if (!file.is_open()) return failed(path, "opened");
  // EINVAL: a file system without fsync of directories has nothing to flush.
  if (::fsync(file.get()) != 0 && !(errno == EINVAL && (flags & O_DIRECTORY))) return failed(path, "flushed to disk");
  return Status::ok();
}

Status write_all(const std::string& path, std::string_view content) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.is_open()) return failed(path, "created");
  while (!content.empty()) {
    ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed(path, "written");
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (!file.close()) return failed(path, "written");
  return Status::ok();
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  // A rename would put a plain file in the place of a device, a pipe or a socket.
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return invalid_argument("{}: is no plain file and is not replaced", path);
  AtomicFile file;
  file.path_ = path;
  std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  file.temporary_ = temporary;  // removed even when it could be made but not closed
  ALTIPLANO_RETURN_IF_ERROR(write_all(temporary, ""));
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  discard();
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, {});
  return *this;
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::discard() noexcept {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Status AtomicFile::commit() {
  ALTIPLANO_ASSERT(!temporary_.empty(), "commit of {} twice", path_);
  ALTIPLANO_RETURN_IF_ERROR(sync_file(temporary_));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed(path_, "put in place");
  temporary_.clear();
  return sync_directory(parent_of(path_));
}

Status write_file_atomically(const std::string& path, std::string_view content) {
  ALTIPLANO_ASSIGN(AtomicFile file, AtomicFile::create(path));
  ALTIPLANO_RETURN_IF_ERROR(write_all(file.temporary_path(), content));
  return file.commit();
}

Status sync_file(const std::string& path) {
  return sync(path, O_RDONLY);
}
Status sync_directory(const std::string& path) {
  return sync(path, O_RDONLY | O_DIRECTORY);
}

Status publish_directory(const std::string& from, const std::string& to) {
  std::error_code error;
  if (fs::exists(to, error)) return runtime_failure("{}: exists already", to);
  ALTIPLANO_RETURN_IF_ERROR(sync_directory(from));
  if (::rename(from.c_str(), to.c_str()) != 0) return failed(to, "put in place");
  return sync_directory(parent_of(to));
}

Result<bool> exchange(const std::string& a, const std::string& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == EINVAL || errno == ENOSYS) return false;
    return failed(b, "put in place");
  }
  ALTIPLANO_RETURN_IF_ERROR(sync_directory(parent_of(b)));
  return true;
}

Result<std::string> read_file(const std::string& path) {
  Descriptor file(path, O_RDONLY);
  if (!file.is_open()) return failed(path, "opened");
  std::string content;
  char block[65536];
  while (true) {
    ssize_t read = ::read(file.get(), block, sizeof block);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return failed(path, "read");
    if (read == 0) return content;
    content.append(block, static_cast<size_t>(read));
  }
}

Status read_file_range(const std::string& path, int64_t offset, void* data, size_t bytes) {
  Descriptor file(path, O_RDONLY);
  if (!file.is_open()) return failed(path, "opened");
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    ssize_t read = ::pread(file.get(), at, bytes, offset);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return failed(path, "read");
    if (read == 0) return runtime_failure("{}: ends {} bytes before it should", path, bytes);
    at += read, offset += read, bytes -= static_cast<size_t>(read);
  }
  return Status::ok();
}

}  // namespace altiplano
