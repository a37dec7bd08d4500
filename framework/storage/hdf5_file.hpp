#pragma once
// storage/ (L1): HDF5 files (the only home of hdf5.h), checksums, atomic publish. Used by checkpoints, data and the
// profile database. May include base/ only.
//
// Hdf5File: one open file with named datasets and attributes. HDF5 itself never prints: its error stack becomes the
// Status, with file and dataset named. Thread-safe: Debian's HDF5 is not, so every call holds one lock of the process.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

/// Element types of datasets. bf16 has no HDF5 type: it is stored as u16 with the attribute dtype = "bf16".
enum class ElementType : uint8_t { kF64, kF32, kBF16, kI64, kI32, kU32, kU16, kU8 };
const char* to_string(ElementType type);  ///< "f64", …
int64_t size_of(ElementType type);        ///< bytes

using Extents = std::vector<int64_t>;

struct DatasetOptions {
  Extents chunk;             ///< empty: contiguous (no filters); else one extent per dim
  bool checksum = true;      ///< fletcher32 per chunk: a flipped bit is found when the chunk is read
  int deflate = 0;           ///< 0 none, 1-9 gzip level (chunked only)
  bool is_growable = false;  ///< dim 0 may be extended (chunked only)
};

struct DatasetInfo {
  ElementType type = ElementType::kF32;
  Extents extents;
};

/// A part of a virtual dataset: the box at `origin` is the whole dataset `dataset` of `file` (relative to the virtual
/// file's folder).
struct VirtualPart {
  std::string file, dataset;
  Extents origin, extents;
};

namespace hdf5 {
struct WriteError;
}

class Hdf5File {
 public:
  /// Truncates. The writer publishes with AtomicFile, so nobody else has the path open.
  static Result<Hdf5File> create(const std::string& path);
  /// Read-only. Messages explain missing, truncated, locked and foreign files.
  static Result<Hdf5File> open(const std::string& path);
  Hdf5File(Hdf5File&& other) noexcept;
  Hdf5File& operator=(Hdf5File&& other) noexcept;
  ~Hdf5File();

  const std::string& path() const { return path_; }
  /// Flushes and closes; write errors (disk full) surface here at the latest, with the system's reason.
  Status close();

  /// Groups on the way are created. A scalar has empty extents; extents of 0 are fine.
  Status create_dataset(const std::string& name, ElementType type, const Extents& extents,
                        const DatasetOptions& options = {});
  Status create_virtual_dataset(const std::string& name, ElementType type, const Extents& extents,
                                const std::vector<VirtualPart>& parts);
  /// Grows dim 0 of a growable dataset to `extent`.
  Status grow(const std::string& name, int64_t extent);
  /// The box at origin with extents, row-major in memory, elements of the dataset's own type. The caller's buffer has
  /// product(extents) elements. Refuses a box outside the dataset.
  Status write(const std::string& name, const Extents& origin, const Extents& extents, const void* data);
  Status read(const std::string& name, const Extents& origin, const Extents& extents, void* data) const;
  /// As read(), into a part of a larger row-major memory of extents `memory`: the box lands at `at` there.
  Status read_into(const std::string& name, const Extents& origin, const Extents& extents, void* data,
                   const Extents& memory, const Extents& at) const;
  Result<DatasetInfo> info(const std::string& name) const;
  /// Byte of the file where the elements of a contiguous dataset begin; -1: chunked, virtual or never written.
  Result<int64_t> data_offset(const std::string& name) const;
  bool has(const std::string& name) const;
  /// Paths of all datasets, sorted.
  Result<std::vector<std::string>> dataset_names() const;

  // Attributes of an object ("/" is the file itself).
  Status set_attribute(const std::string& object, const std::string& key, const std::string& value);
  Status set_attribute(const std::string& object, const std::string& key, int64_t value);
  Status set_attribute(const std::string& object, const std::string& key, double value);
  bool has_attribute(const std::string& object, const std::string& key) const;
  Result<std::string> string_attribute(const std::string& object, const std::string& key) const;
  Result<int64_t> int_attribute(const std::string& object, const std::string& key) const;
  Result<double> double_attribute(const std::string& object, const std::string& key) const;

 private:
  Hdf5File();
  Status check_written() const;
  Result<int64_t> dataset(const std::string& name) const;
  Status finish_dataset(const std::string& name, ElementType type, int64_t id);
  Status read_number(const std::string& object, const std::string& key, int64_t type, void* value) const;
  struct Memory {
    void* data;
    const Extents& extents;
    const Extents& at;
  };
  Status transfer(bool is_write, const std::string& name, const Extents& origin, const Extents& extents,
                  const Memory& memory) const;
  void release() noexcept;

  std::string path_;
  int64_t file_ = -1;                              ///< hid_t
  std::unique_ptr<hdf5::WriteError> error_;        ///< of a file being written
  mutable std::map<std::string, int64_t> opened_;  ///< datasets kept open, by name
};

struct Hdf5Versions {
  std::string headers, library;  ///< "1.10.8": compiled against, running with
  bool agree() const { return headers == library; }
  std::string mismatch_text() const;  ///< "1.10.9, but built with the headers of 1.10.8: install the matching pair"
};
Hdf5Versions hdf5_versions();  ///< never aborts, unlike HDF5's own check, which comes with the first file

}  // namespace altiplano
