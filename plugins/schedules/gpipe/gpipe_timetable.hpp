#pragma once
// GPipe (Huang et al., "GPipe: Efficient training of giant neural networks using pipeline parallelism", NeurIPS 2019,
// section 2.3): every worker does the forwards of all microbatches, then all backwards. Both run in microbatch order,
// so that gradients are summed in the same order as under 1F1B.
#include "framework/api/schedule.hpp"

namespace altiplano::gpipe {

/// Refuses fewer than one stage or microbatch, more than one chunk, and an in-flight limit below the number of
/// microbatches.
Status check_request(const ScheduleRequest& request);

/// Stage p lives on worker p, whose list is F0 … F(m-1) B0 … B(m-1).
Timetable build_timetable(int num_stages, int num_microbatches);

}  // namespace altiplano::gpipe
