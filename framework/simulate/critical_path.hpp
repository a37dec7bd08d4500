#pragma once
// What a step waits for from its first moment to its last: nothing on this path can be made shorter without the step
// getting shorter, unless another path is as long.
#include "framework/simulate/simulate_programs.hpp"

namespace altiplano {

/// A stretch of the path, at one rank or on the wire. Stretches follow each other without a gap.
struct PathPart {
  Seconds begin, end;
  int exchange = -1;  ///< -1: a rank works
  int program = 0;    ///< whose work it is; of an exchange: who was waited for in it
};

/// From the last to end a step, back through what it waited for.
std::vector<PathPart> critical_path(const ProgramSimulation& simulation);

/// Lines for people: what the path does where, long ones shortened in the middle, and which stage and what kind of time
/// it is made of. `stage_names` by StageId.
std::string critical_path_in_words(const ProgramSimulation& simulation, const std::vector<std::string>& stage_names);

}  // namespace altiplano
