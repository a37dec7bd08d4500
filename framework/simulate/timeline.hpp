#pragma once
// Pictures of a simulated step. Rows and processes are programs: a rank, or a stage whose ranks behave alike.
#include <string>
#include <vector>

#include "framework/simulate/simulate_programs.hpp"

namespace altiplano {

/// "s0, rank 0 of 8" where the rank stands for eight that behave alike, "s0, rank 3" alone. `stage_names` by StageId.
std::string row_name(const RankTimeline& rank, const std::vector<std::string>& stage_names);

/// Trace events in the JSON that chrome://tracing and Perfetto open: per row its blocks, what it waited for, its
/// collectives and the messages it sent; times in microseconds.
std::string chrome_trace(const ProgramSimulation& simulation, const std::vector<std::string>& stage_names);

/// A picture that stands alone, with legend and scale; any browser shows it.
std::string timeline_svg(const ProgramSimulation& simulation, const std::vector<std::string>& stage_names,
                         const std::string& title);

}  // namespace altiplano
