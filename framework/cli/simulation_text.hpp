#pragma once
// What commands that simulate plans say of them.
#include <string>
#include <vector>

#include "framework/runtime/job.hpp"
#include "framework/simulate/simulate_programs.hpp"

namespace altiplano {

/// A plan on the job's graph, cluster and device: the job's own, or one that its planner considered.
Result<ProgramSimulation> simulate_for(const Job& job, const Plan& plan);

std::vector<std::string> stage_names(const Plan& plan);

/// What a step is made of, the mean of all ranks.
struct StepParts {
  Seconds busy, exposed, bubble;
};
StepParts parts_of(const ProgramSimulation& simulation);

/// "46.8 ms = computing 31.7 ms + exposed communication 165 us + bubble 14.9 ms"
std::string step_text(const ProgramSimulation& simulation);

/// "node 145.3 GiB, network 3.9 GiB a step, by the level that is crossed"
std::string traffic_text(const ProgramSimulation& simulation, const Cluster& cluster);

/// The timeline as a picture, titled with model, plan and step.
Status write_timeline(const std::string& path, const Plan& plan, const ProgramSimulation& simulation);

}  // namespace altiplano
