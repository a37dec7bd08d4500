#pragma once
// The simulation of a plan: lowers it, for one rank of every stage where that says all, and simulates the programs.
#include "framework/api/planner.hpp"
#include "framework/program/lowering.hpp"
#include "framework/simulate/simulate_programs.hpp"

namespace altiplano {

/// Up to this many ranks each is simulated where the first of every stage do not say all.
inline constexpr int kMostRanksEach = 64;

/// Programs and the ranks that each stands for.
struct SimulatedPrograms {
  std::vector<Program> programs;
  std::vector<std::vector<RankId>> alike;
};

/// `timetable` as the plan's schedule built it. Positions in the cluster are slots in order. The first rank of a stage
/// stands for all its ranks where stages hand to each other rank by rank (stand_for_all), and always beyond
/// kMostRanksEach; its piece of every tensor is the largest. `each_rank`: up to kMostRanksEach each stands for itself.
Result<SimulatedPrograms> lower_for_simulation(const TrainingGraph& graph, const Plan& plan, const Timetable& timetable,
                                               const LoweringOptions& options, bool each_rank = false);

Result<ProgramSimulation> simulate_plan(const TrainingGraph& graph, const Plan& plan, const Cluster& cluster,
                                        const Timetable& timetable, const LoweringOptions& options = {});

}  // namespace altiplano
