#pragma once
// The profile database: measured times of kernel forms, by machine and shape, in one HDF5 file of the user,
// ${XDG_CACHE_HOME:-~/.cache}/altiplano/kernels.h5. It saves measuring again and gives every job of the machine the
// same table; nothing depends on it being there.
//
// Several processes may use it at once: readers see a whole file, since writers replace it; writers take turns by a
// lock beside it and keep what others have written meanwhile. The file ends with a checksum of all before it, which is
// looked at before HDF5 is: a damaged file is told and made anew.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

/// Seconds of one call.
struct FormTime {
  std::string form;
  double median = 0, fastest = 0, slowest = 0;
};

struct KernelMeasurement {
  std::string machine, shape;
  std::vector<FormTime> times;  ///< of every form, in the device's order
  std::string best;             ///< the form to take
  int64_t rounds = 0;           ///< calls of the form that was called least
  std::string date;             ///< "2026-11-30"
};

/// A file's path, or empty where neither XDG_CACHE_HOME nor HOME is set.
std::string kernel_database_path(const std::function<std::optional<std::string>(const std::string& name)>& environment);

class KernelDatabase {
 public:
  /// Nothing when there is no such file. `path` empty: a database that stays empty.
  static KernelDatabase read(const std::string& path);

  /// Empty, or why what lay there could not be read.
  const std::string& notice() const { return notice_; }
  const std::string& path() const { return path_; }
  const KernelMeasurement* find(const std::string& machine, const std::string& shape) const;
  size_t num_shapes(const std::string& machine) const;

  /// Adds these, replacing older ones of the same machine and shape, to what the file holds by then. Fails where
  /// nothing can be written (a folder without rights, a full disk, a lock held for seconds); the measurements are known
  /// to this object in any case.
  Status store(const std::vector<KernelMeasurement>& measurements);

 private:
  using Key = std::pair<std::string, std::string>;  ///< machine, shape
  std::string path_, notice_;
  std::map<Key, KernelMeasurement> known_;
};

}  // namespace altiplano
