#pragma once
// Why a plan was chosen: the plans that its planner considered, told apart by stages, degrees and microbatches.
#include <string>

#include "framework/runtime/job.hpp"
#include "framework/simulate/simulate_programs.hpp"

namespace altiplano {

/// "pipeline 2 x data 2, 1f1b, ZeRO-1, 8 microbatches of 4", with the layers of the stages where they are several.
std::string plan_in_words(const Plan& plan);

/// The best `most` plans that were considered, fastest first, those that do not fit last; the chosen one is marked.
std::string top_plans(const Job& job, size_t most);

/// Lines "why", "runner-up", "no room": what speaks for the plan, what the fastest other one would lose or win, in time
/// by what makes it and in memory, and the fastest of those that do not fit. Simulates the second; `simulation` is the
/// plan's own. For a planner
/// that had no other plan that fits, other degrees are tried.
Result<std::string> why_this_plan(const Job& job, const ProgramSimulation& simulation);

}  // namespace altiplano
