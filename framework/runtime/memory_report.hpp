#pragma once
// What a rank was predicted to need and what it took, as <run.dir>/memory-rank-N.json at the end of a run:
//   {"rank": 0, "predicted": 1000, "peak": 1000, "resident_peak": 60000000}
// Bytes. predicted: the program's buffers; peak: the most that the device allocated at a time; resident_peak: the most
// of the process that lay in memory (VmHWM), program, libraries and open files included.
#include <string>

#include "framework/base/status.hpp"
#include "framework/base/units.hpp"

namespace altiplano {

struct MemoryReport {
  int rank = 0;
  Bytes predicted, peak, resident_peak;
};

/// VmHWM of this process.
Result<Bytes> resident_peak();
/// Replaces the file of an earlier run; the folder exists.
Status write_memory_report(const std::string& run_directory, const MemoryReport& report);

}  // namespace altiplano
