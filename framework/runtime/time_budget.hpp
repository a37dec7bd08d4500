#pragma once
// TimeBudget: when a run has to take its last step, so that it has saved before its time is over.
#include <cstdint>

#include "framework/base/units.hpp"
#include "framework/config/job_config.hpp"

namespace altiplano {

/// Seconds since 1970 by which a run that starts now has to be over: train.time_limit from now on, or `job_end` if that
/// is sooner and the job does not say `none`. 0, as of `job_end`: no limit.
Result<int64_t> run_end(const Options& options, int64_t job_end, double now);

/// Seconds since 1970.
double unix_time();

class TimeBudget {
 public:
  /// No end: time is never over.
  TimeBudget() = default;
  /// `checkpoint`: what a save writes; taken to be slow until one was timed.
  TimeBudget(int64_t end, Bytes checkpoint);
  // What these took; the longest of each counts.
  void note_step(Seconds took);
  void note_validation(Seconds took);
  void note_save(Seconds took);
  /// Whether after the step that begins at `now` there is no time for another one, with all that may follow each.
  bool is_last_step(double now) const;
  int64_t end() const { return end_; }

 private:
  int64_t end_ = 0;
  Seconds step_, validation_, save_;
  bool has_saved_ = false;
};

}  // namespace altiplano
