#pragma once
// 1F1B with a flush at the end of the step (Narayanan et al., "Memory-efficient pipeline-parallel DNN training", ICML
// 2021, PipeDream-Flush; "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021,
// section 2.2.1): after a warm-up of forwards a worker alternates one forward and one backward.
#include "framework/api/schedule.hpp"

namespace altiplano::one_f_one_b {

/// Refuses fewer than one stage or microbatch, more than one chunk, a negative in-flight limit.
Status check_request(const ScheduleRequest& request);

/// Microbatches that the worker of `stage` holds at once: min(m, stages - stage), or less by `limit` (0: none). It
/// falls by at most one from a stage to the next, which is why every limit is free of deadlock: B(k) of stage s+1 waits
/// for F(k + in_flight(s+1) - 1), whose own wait at stage s is for a B before k.
int num_in_flight(int num_stages, int num_microbatches, int stage, int64_t limit);

/// Stage p lives on worker p: num_in_flight forwards, then B and F in turn, then the remaining B.
Timetable build_timetable(int num_stages, int num_microbatches, int64_t limit);

}  // namespace altiplano::one_f_one_b
