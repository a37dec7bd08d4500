#pragma once
// The data section of a job as what BatchSource opens.
#include "framework/runtime/data/batch_source.hpp"
#include "framework/runtime/job.hpp"

namespace altiplano {

/// With the places of the keys in the job file, so that refusals name them.
BatchSourceOptions job_data_options(const Job& job);

}  // namespace altiplano
