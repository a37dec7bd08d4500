#include "framework/storage/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "framework/base/text.hpp"

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

/// The host is in it: a process number means something on its own host only.
std::string temporary_prefix(const std::string& path) {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return fmt::format("{}.tmp-{:08x}-", path, static_cast<uint32_t>(fingerprint(host)));
}

/// Of writers that were killed on this host.
void remove_stale_temporaries(const std::string& path) {
  const std::string prefix = fs::path(temporary_prefix(path)).filename().string();
  std::error_code error;
  for (fs::directory_iterator at(parent_of(path), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const auto process = parse_int(name.substr(prefix.size()));
    if (process && ::kill(static_cast<pid_t>(*process), 0) != 0 && errno == ESRCH) ::unlink(at->path().c_str());
  }
}

/// Whether an error says that the path is wrong, and not that the disk is full or broken.
bool blames_path(int error) {
  constexpr int kPathErrors[] = {ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, EROFS, ENAMETOOLONG, ELOOP, EEXIST};
  return std::ranges::find(kPathErrors, error) != std::end(kPathErrors);
}

}  // namespace

std::string temporary_name(const std::string& path) {
  return fmt::format("{}{}", temporary_prefix(path), ::getpid());
}

Result<AtomicFile> AtomicFile::create(const std::string& path, bool is_named) {
  // A rename would put a plain file in the place of a device, a pipe or a socket.
  std::error_code error;
  const auto status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status))
    return invalid_argument("{}: is no plain file and is not replaced", path);
  AtomicFile file;
  file.path_ = fs::exists(status) && fs::is_symlink(path, error) ? fs::canonical(path, error).string() : path;
  file.temporary_ = temporary_name(file.path_);
  const Descriptor made(file.temporary_, O_WRONLY | O_CREAT | O_TRUNC);
  const int why = errno;
  if (made.is_open()) return file;
  if (is_named && blames_path(why)) return invalid_argument("{}: cannot be written: {}", path, std::strerror(why));
  return runtime_failure("{}: cannot be created: {}", file.temporary_, std::strerror(why));
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  return create(path, false);
}

Result<AtomicFile> AtomicFile::create_named(const std::string& path) {
  remove_stale_temporaries(path);
  return create(path, true);
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

Status write_named_file(const std::string& path, std::string_view content) {
  ALTIPLANO_ASSIGN(AtomicFile file, AtomicFile::create_named(path));
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

Result<std::string> read_file(const std::string& path, int64_t most_bytes) {
  Descriptor file(path, O_RDONLY | O_NONBLOCK);  // a pipe without a writer is not waited for
  if (!file.is_open()) return failed(path, "opened");
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return failed(path, "read");
  if (!S_ISREG(about.st_mode)) return runtime_failure("{}: cannot be read: it is no regular file", path);
  std::string content;
  char block[65536];
  while (true) {
    ssize_t read = ::read(file.get(), block, sizeof block);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return failed(path, "read");
    if (read == 0) return content;
    content.append(block, static_cast<size_t>(read));
    if (static_cast<int64_t>(content.size()) > most_bytes)  // some, as in /proc, do not say how long they are
      return runtime_failure("{}: cannot be read: it has more than {} bytes", path, most_bytes);
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
