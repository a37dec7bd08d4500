#pragma once
// A plan in the words of another framework.
#include <string>

#include "framework/runtime/job.hpp"

namespace altiplano {

/// Flags of Megatron-LM (Megatron Core 0.14 names) for the job's model, batch, precision and plan, one a line.
/// Refuses a plan that Megatron has no flags for, and says what of it: stages of unlike numbers of blocks (other than
/// the first or last), shardings other than its own rule, recomputation of other layers than the first of each stage,
/// schedules other than 1F1B, models other than GPT.
Result<std::string> export_megatron(const Job& job);

}  // namespace altiplano
