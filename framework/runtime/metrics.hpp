#pragma once
// Metrics of a run as JSON lines, one per step, written by rank 0. After a resume each step stands once: later lines of
// the earlier attempt are cut.
#include <cstdio>
#include <optional>
#include <string>

#include "framework/base/status.hpp"
#include "framework/runtime/not_finite.hpp"

namespace altiplano {

struct StepMetrics {
  int64_t step = 0, tokens = 0;  ///< tokens: valid ones of this step
  double loss = 0, gradient_norm = 0, learning_rate = 0, seconds = 0, tokens_per_second = 0;
  bool skipped = false;
  std::optional<NotFinite> not_finite;  ///< of a skipped step: where it came from
};

/// What a file held of steps that the run does not go on from.
struct OpenedMetrics {
  int64_t num_abandoned = 0;  ///< lines that are no longer in it
  std::string aside;          ///< the file that holds them now; empty: they are gone
};

class MetricsFile {
 public:
  MetricsFile() = default;
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  /// Opens `path` for appending after removing the lines of steps beyond `last_step` (an attempt that the run does not
  /// go on from) and a last line that was cut off. `last_step` 0 begins anew: the file as it was is set aside.
  Result<OpenedMetrics> open(const std::string& path, int64_t last_step);
  /// A line that cannot be written (disk full) is lost as a whole and stops no run. What there is to tell of it: at the
  /// first one that is lost, and when lines can be written again; empty otherwise.
  [[nodiscard]] std::string write_step(const StepMetrics& metrics);
  [[nodiscard]] std::string write_validation(int64_t step, double loss, int64_t tokens);
  int64_t num_lost() const { return num_lost_; }  ///< since a line was last written

 private:
  std::string write_line(const std::string& line);
  bool append(const std::string& text);
  std::FILE* file_ = nullptr;
  std::string path_;
  int64_t num_lost_ = 0;
};

}  // namespace altiplano
