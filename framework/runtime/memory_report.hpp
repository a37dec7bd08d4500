#pragma once
// What a rank was predicted to need and what it took, as <run.dir>/memory-rank-N.json at the end of a run:
//   {"rank": 0, "predicted": 1000, "peak": 1000, "resident_peak": 60000000, "resident_shared": 5000}
// Bytes. predicted: the program's buffers; peak: the most that the device allocated at a time; resident_peak: the most
// of the process that lay in memory (VmHWM), program, libraries and open files included; resident_shared: what of it is
// shared memory at the end (RssShmem), the rank's own arenas and what it reached of its peers'.
#include <string>

#include "framework/base/status.hpp"
#include "framework/base/units.hpp"

namespace altiplano {

struct MemoryReport {
  int rank = 0;
  Bytes predicted, peak, resident_peak, resident_shared;
};

/// A line of /proc/self/status that is a size ("VmHWM", "RssShmem").
Result<Bytes> size_in_status(const std::string& key);
/// Replaces the file of an earlier run; the folder exists.
Status write_memory_report(const std::string& run_directory, const MemoryReport& report);

}  // namespace altiplano
