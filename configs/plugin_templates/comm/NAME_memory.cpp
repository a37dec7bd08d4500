#include "@name@_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace @name@_plugin {

using namespace altiplano;

static Result<std::shared_ptr<void>> map(int file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return runtime_failure("comm/@name@: mapping {} B: {}", bytes, std::strerror(errno));
  return std::shared_ptr<void>(memory, [bytes](void* p) { munmap(p, bytes); });
}

Result<SharedMemory> make_memory(size_t bytes) {
  const int file = memfd_create("altiplano-@name@", MFD_CLOEXEC);
  if (file < 0) return runtime_failure("comm/@name@: memfd_create: {}", std::strerror(errno));
  SharedMemory made;
  made.descriptor = std::shared_ptr<const int>(new int(file), [](const int* descriptor) {
    close(*descriptor);
    delete descriptor;
  });
  made.path = fmt::format("/proc/{}/fd/{}", getpid(), file);
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0)
    return runtime_failure("comm/@name@: {} B of shared memory: {}", bytes, std::strerror(errno));
  ALTIPLANO_ASSIGN(made.memory, map(file, bytes));
  return made;
}

Result<std::shared_ptr<void>> attach_memory(const std::string& path, size_t bytes) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return runtime_failure("comm/@name@: cannot open {}: {}; are all ranks on one host?", path, std::strerror(errno));
  struct stat info {};
  const bool fits = fstat(file, &info) == 0 && info.st_size == static_cast<off_t>(bytes);
  auto memory = fits ? map(file, bytes)
                     : Result<std::shared_ptr<void>>(invalid_argument(
                           "{} has {} B, this rank expects {} B; comm.chunk_bytes must be equal on all ranks", path,
                           info.st_size, bytes));
  close(file);
  return memory;
}

}  // namespace @name@_plugin
