#pragma once
// Inside of storage/ only: hdf5.h, the process-wide lock, owned identifiers, and the error stack as a Status.
#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

#include "framework/storage/hdf5_file.hpp"

namespace altiplano::hdf5 {

/// Taken by every public call; recursive, because public calls use each other. Taking it also silences HDF5's own
/// printing.
class Lock {
 public:
  Lock();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// An identifier with the function that closes it.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  bool is_valid() const { return id_ >= 0; }
  hid_t release() { return std::exchange(id_, -1); }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// What the error stack says, innermost first, and clears it.
std::string take_error_text();
/// "path: dataset 'name': cannot be read: <reason>", with an explanation where the reason is a known one. Call it
/// before any Handle closes: a call that succeeds clears HDF5's error stack.
Status failure(const std::string& path, const std::string& object, const std::string& what);

/// Refuses a library of another version than the headers, which HDF5 itself would end the process for.
Status check_versions();

hid_t memory_type(ElementType type);  ///< in the machine's byte order
hid_t file_type(ElementType type);    ///< little-endian

}  // namespace altiplano::hdf5
