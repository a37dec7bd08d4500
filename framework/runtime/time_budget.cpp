#include "framework/runtime/time_budget.hpp"

#include <algorithm>
#include <chrono>

namespace altiplano {

namespace {

constexpr double kSlowDisk = 100e6;  // bytes per second, until a save was timed
constexpr Seconds kLeaving(1);       // for the processes to end

}  // namespace

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Result<int64_t> run_end(const Options& options, int64_t job_end, double now) {
  ALTIPLANO_ASSIGN(const TimeLimit limit, time_limit(options));
  if (limit.is_none) return 0;
  // An end that is past is none that anybody enforces.
  const int64_t end = static_cast<double>(job_end) > now ? job_end : 0;
  if (!limit.length) return end;
  const auto own = static_cast<int64_t>(now + limit.length->value);
  return end == 0 ? own : std::min(own, end);
}

TimeBudget::TimeBudget(int64_t end, Bytes checkpoint)
    : end_(end), save_(static_cast<double>(checkpoint.value) / kSlowDisk) {}

void TimeBudget::note_step(Seconds took) {
  step_ = std::max(step_, took);
}

void TimeBudget::note_validation(Seconds took) {
  validation_ = std::max(validation_, took);
}

void TimeBudget::note_save(Seconds took) {
  save_ = has_saved_ ? std::max(save_, took) : took;
  has_saved_ = true;
}

bool TimeBudget::is_last_step(double now) const {
  if (end_ == 0) return false;
  const Seconds needed = (step_ + validation_ + save_) * 2 + kLeaving;
  return static_cast<double>(end_) - now < needed.value;
}

}  // namespace altiplano
