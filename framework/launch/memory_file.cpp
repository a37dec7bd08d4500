#include "framework/launch/memory_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace altiplano {

Result<MemoryFile> MemoryFile::create(const std::string& name, const std::string& content) {
  MemoryFile file(memfd_create(name.c_str(), MFD_CLOEXEC));
  size_t written = 0;
  while (file.file_ >= 0 && written < content.size()) {
    const ssize_t n = write(file.file_, content.data() + written, content.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  if (file.file_ < 0 || written < content.size())
    return runtime_failure("{}: {} bytes of shared memory: {}", name, content.size(), std::strerror(errno));
  return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

MemoryFile::~MemoryFile() {
  if (file_ >= 0) close(file_);
}

std::string MemoryFile::address() const {
  return fmt::format("/proc/{}/fd/{}", getpid(), file_);
}

}  // namespace altiplano
