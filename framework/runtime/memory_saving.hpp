#pragma once
// What may be given up where a job does not fit the memory: ZeRO's later stages cost messages, recomputation costs
// time.
#include "framework/runtime/job_plan.hpp"

namespace altiplano {

constexpr int kDefaultZero = 1;

/// Fills job.plan. Where nothing fits with the defaults of what the job file leaves open (parallel.zero_stage,
/// parallel.recompute), the least ZeRO stage that fits and recomputation with the least stage that fits are tried, the
/// faster one by prediction is taken, and as few layers are recomputed as fit; job.graph then recomputes them and
/// job.notices says so. kInfeasible with the smallest change that fits.
Status plan_within_memory(Job& job, const PlanningSizes& sizes, LastLowered& last);

}  // namespace altiplano
