#pragma once
// The algorithm, as pure functions: it knows stages and microbatches, never a tensor.
#include "framework/api/schedule.hpp"

namespace @name@_plugin {

/// Refuses what this schedule cannot do, with the numbers and the nearest legal value.
altiplano::Status check_request(const altiplano::ScheduleRequest& request);

/// Waves: the forwards of `wave` microbatches, then their backwards, then the next wave. Stage p is worker p's.
altiplano::Timetable wave_timetable(int num_stages, int num_microbatches, int wave);

}  // namespace @name@_plugin
