#include <algorithm>
#include <cstdlib>
#include <vector>

#include "framework/storage/hdf5_detail.hpp"

namespace altiplano {
namespace hdf5 {
namespace {

std::recursive_mutex& process_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

herr_t collect(unsigned, const H5E_error2_t* error, void* out) {
  if (error->desc && *error->desc) static_cast<std::vector<std::string>*>(out)->push_back(error->desc);
  return 0;
}

/// Reasons a user can do something about, told apart by HDF5's own words.
struct KnownReason {
  const char* pattern;
  const char* explanation;
};
constexpr KnownReason kKnownReasons[] = {
    {"unable to lock file",
     "another process holds a lock on it, or the file system refuses locks; files are published complete and never "
     "changed, so "
     "running with HDF5_USE_FILE_LOCKING=FALSE is safe"},
    {"truncated file",
     "the file is shorter than its own header says: a copy or a write was cut off; copy or write it again"},
    {"file signature not found", "this is not an HDF5 file, or its beginning is damaged"},
    {"already open for write", "a writer died while it had the file open; write it again"},
    {"Fletcher32 checksum", "the stored checksum of a chunk does not match: bits of the file have changed"},
    {"No space left on device", "the disk is full"},
    {"No such file or directory", "there is no such file"},
    {"Permission denied", "the file may not be read or written by this user"},
};

std::string explanation_of(const std::string& text) {
  for (const KnownReason& reason : kKnownReasons) {
    if (text.find(reason.pattern) != std::string::npos) return reason.explanation;
  }
  return {};
}

}  // namespace

Lock::Lock() : lock_(process_mutex()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string take_error_text() {
  std::vector<std::string> lines;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, &collect, &lines);
  H5Eclear2(H5E_DEFAULT);
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text.empty() ? "no reason given by HDF5" : text;
}

Status failure(const std::string& path, const std::string& object, const std::string& what) {
  std::string reason = take_error_text();
  std::string place = object.empty() ? path : fmt::format("{}: {}", path, object);
  std::string explanation = explanation_of(reason);
  if (explanation.empty()) return runtime_failure("{}: cannot be {}: HDF5: {}", place, what, reason);
  return runtime_failure("{}: cannot be {}: {} (HDF5: {})", place, what, explanation,
                         reason.substr(0, reason.find(';')));
}

hid_t memory_type(ElementType type) {
  switch (type) {
    case ElementType::kF64:
      return H5T_NATIVE_DOUBLE;
    case ElementType::kF32:
      return H5T_NATIVE_FLOAT;
    case ElementType::kI64:
      return H5T_NATIVE_INT64;
    case ElementType::kI32:
      return H5T_NATIVE_INT32;
    case ElementType::kU32:
      return H5T_NATIVE_UINT32;
    case ElementType::kBF16:
    case ElementType::kU16:
      return H5T_NATIVE_UINT16;
    case ElementType::kU8:
      return H5T_NATIVE_UINT8;
  }
  return -1;
}

hid_t file_type(ElementType type) {
  switch (type) {
    case ElementType::kF64:
      return H5T_IEEE_F64LE;
    case ElementType::kF32:
      return H5T_IEEE_F32LE;
    case ElementType::kI64:
      return H5T_STD_I64LE;
    case ElementType::kI32:
      return H5T_STD_I32LE;
    case ElementType::kU32:
      return H5T_STD_U32LE;
    case ElementType::kBF16:
    case ElementType::kU16:
      return H5T_STD_U16LE;
    case ElementType::kU8:
      return H5T_STD_U8LE;
  }
  return -1;
}

/// What HDF5 would end the process for when it opens its first file, unless its own variable tells it not to.
Status check_versions() {
  static const Hdf5Versions versions = hdf5_versions();
  const char* disabled = std::getenv("HDF5_DISABLE_VERSION_CHECK");
  if (versions.agree() || (disabled && *disabled != '0')) return Status::ok();
  return runtime_failure("the HDF5 library is {}, or set HDF5_DISABLE_VERSION_CHECK=1", versions.mismatch_text());
}

}  // namespace hdf5

const char* to_string(ElementType type) {
  constexpr const char* kNames[] = {"f64", "f32", "bf16", "i64", "i32", "u32", "u16", "u8"};
  return kNames[static_cast<size_t>(type)];
}

int64_t size_of(ElementType type) {
  constexpr int64_t kSizes[] = {8, 4, 2, 8, 4, 4, 2, 1};
  return kSizes[static_cast<size_t>(type)];
}

std::string Hdf5Versions::mismatch_text() const {
  return fmt::format("{}, but built with the headers of {}: install the matching pair", library, headers);
}

Hdf5Versions hdf5_versions() {
  unsigned major = 0, minor = 0, release = 0;
  {
    hdf5::Lock lock;
    H5get_libversion(&major, &minor, &release);
  }
  return {fmt::format("{}.{}.{}", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE),
          fmt::format("{}.{}.{}", major, minor, release)};
}

}  // namespace altiplano
