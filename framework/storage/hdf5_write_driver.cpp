#include "framework/storage/hdf5_write_driver.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace altiplano::hdf5 {
namespace {

/// What a file access property list carries for the driver.
struct AccessInfo {
  WriteError* error;
};

/// HDF5 takes the address of the first member for the whole.
struct File {
  H5FD_t base;
  int descriptor;
  dev_t device;
  ino_t inode;
  haddr_t end_allocated, end_written;
  WriteError* error;
};

File* file_of(H5FD_t* base) {
  return reinterpret_cast<File*>(base);
}
const File* file_of(const H5FD_t* base) {
  return reinterpret_cast<const File*>(base);
}

void keep(File& file, int number) {
  if (file.error->number == 0) file.error->number = number;
}

int open_flags(unsigned flags) {
  return O_CLOEXEC | ((flags & H5F_ACC_RDWR) ? O_RDWR : O_RDONLY) | ((flags & H5F_ACC_CREAT) ? O_CREAT : 0) |
         ((flags & H5F_ACC_TRUNC) ? O_TRUNC : 0) | ((flags & H5F_ACC_EXCL) ? O_EXCL : 0);
}

/// HDF5 first looks whether the file exists, so that an error here counts only when it is the last.
H5FD_t* open_file(const char* name, unsigned flags, hid_t access, haddr_t) {
  const auto* info = static_cast<const AccessInfo*>(H5Pget_driver_info(access));
  info->error->number = 0;
  auto file = std::make_unique<File>();
  file->error = info->error;
  file->descriptor = ::open(name, open_flags(flags), 0644);
  struct stat status = {};
  if (file->descriptor < 0 || ::fstat(file->descriptor, &status) != 0) {
    keep(*file, errno);
    if (file->descriptor >= 0) ::close(file->descriptor);
    return nullptr;
  }
  file->device = status.st_dev, file->inode = status.st_ino;
  file->end_written = static_cast<haddr_t>(status.st_size);
  return &file.release()->base;
}

herr_t close_file(H5FD_t* base) {
  std::unique_ptr<File> file(file_of(base));
  if (::close(file->descriptor) != 0) keep(*file, errno);
  return 0;
}

int compare(const H5FD_t* a, const H5FD_t* b) {
  const auto left = std::pair(file_of(a)->device, file_of(a)->inode),
             right = std::pair(file_of(b)->device, file_of(b)->inode);
  return left < right ? -1 : left > right;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t end_allocated(const H5FD_t* base, H5FD_mem_t) {
  return file_of(base)->end_allocated;
}

herr_t set_end_allocated(H5FD_t* base, H5FD_mem_t, haddr_t address) {
  file_of(base)->end_allocated = address;
  return 0;
}

haddr_t end_written(const H5FD_t* base, H5FD_mem_t) {
  return file_of(base)->end_written;
}

/// What was never written is zero.
herr_t read_bytes(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, size_t bytes, void* buffer) {
  File& file = *file_of(base);
  auto* at = static_cast<char*>(buffer);
  while (bytes > 0) {
    ssize_t read = ::pread(file.descriptor, at, bytes, static_cast<off_t>(address));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) keep(file, errno);
    if (read <= 0) break;
    at += read, address += static_cast<haddr_t>(read), bytes -= static_cast<size_t>(read);
  }
  std::memset(at, 0, bytes);
  return 0;
}

herr_t write_bytes(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, size_t bytes, const void* buffer) {
  File& file = *file_of(base);
  file.end_written = std::max(file.end_written, address + bytes);
  const auto* at = static_cast<const char*>(buffer);
  while (bytes > 0 && file.error->number == 0) {
    ssize_t written = ::pwrite(file.descriptor, at, bytes, static_cast<off_t>(address));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      keep(file, errno);
      break;
    }
    at += written, address += static_cast<haddr_t>(written), bytes -= static_cast<size_t>(written);
  }
  return 0;
}

herr_t truncate_file(H5FD_t* base, hid_t, hbool_t) {
  File& file = *file_of(base);
  if (file.end_written == file.end_allocated) return 0;
  if (file.error->number == 0 && ::ftruncate(file.descriptor, static_cast<off_t>(file.end_allocated)) != 0)
    keep(file, errno);
  file.end_written = file.end_allocated;
  return 0;
}

H5FD_class_t make_driver() {
  constexpr H5FD_mem_t kFreeLists[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  H5FD_class_t driver = {};
  driver.name = "altiplano_write";
  driver.maxaddr = (static_cast<haddr_t>(1) << 62) - 1;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(AccessInfo);
  driver.open = open_file, driver.close = close_file, driver.cmp = compare, driver.query = query;
  driver.get_eoa = end_allocated, driver.set_eoa = set_end_allocated, driver.get_eof = end_written;
  driver.read = read_bytes, driver.write = write_bytes, driver.truncate = truncate_file;
  std::ranges::copy(kFreeLists, driver.fl_map);
  return driver;
}

}  // namespace

bool use_write_driver(hid_t access, WriteError* error) {
  static const H5FD_class_t driver = make_driver();
  static const hid_t id = H5FDregister(&driver);  // HDF5 keeps a pointer to it
  const AccessInfo info{error};
  return id >= 0 && H5Pset_driver(access, id, &info) >= 0;
}

}  // namespace altiplano::hdf5
