#include "framework/runtime/memory_report.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

namespace altiplano {

Result<Bytes> size_in_status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    int64_t kib = 0;
    if (word == key + ":" && file >> kib) return Bytes(kib * 1024);
  }
  return runtime_failure("/proc/self/status: no {}", key);
}

Status write_memory_report(const std::string& run_directory, const MemoryReport& report) {
  std::string path = fmt::format("{}/memory-rank-{}.json", run_directory, report.rank);
  nlohmann::ordered_json json = {{"rank", report.rank},
                                 {"predicted", report.predicted.value},
                                 {"peak", report.peak.value},
                                 {"resident_peak", report.resident_peak.value},
                                 {"resident_shared", report.resident_shared.value}};
  std::ofstream file(path);
  file << json.dump() << "\n";
  file.flush();
  return file ? Status::ok() : runtime_failure("{}: cannot be written", path);
}

}  // namespace altiplano
