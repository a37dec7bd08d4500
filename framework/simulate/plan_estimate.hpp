#pragma once
// What a plan needs and takes: lowers it, counts the bytes of its programs exactly, prices their instructions and
// simulates the timetable. The same Program that will run, so memory is no guess; time is as good as the cluster's
// figures. Where devices slow each other down or exchange data themselves, a timetable cannot say how long a step
// takes: there the programs are simulated (simulate_programs.hpp).
#include "framework/api/planner.hpp"
#include "framework/program/lowering.hpp"
#include "framework/simulate/program_prices.hpp"

namespace altiplano {

/// `timetable` as the plan's schedule built it. Positions in the cluster are slots in order.
Result<PlanEstimate> estimate_plan(const TrainingGraph& graph, const Plan& plan, const Cluster& cluster,
                                   const Timetable& timetable, const LoweringOptions& options = {});

/// The same of programs that were lowered already: all ranks' by rank, or the first rank's of every stage, whose
/// figures then stand for all its ranks.
Result<PlanEstimate> estimate_programs(const TrainingGraph& graph, const Plan& plan, const Cluster& cluster,
                                       const Timetable& timetable, const std::vector<Program>& programs);

/// Bytes of one program by what they hold.
struct MemoryBreakdown {
  Bytes weights, gradients, optimizer, activations;
  Bytes total() const { return weights + gradients + optimizer + activations; }
};
MemoryBreakdown memory_of(const Program& program);

/// What one block run once takes a rank alone on its node, its collectives included.
Seconds block_time(const Program& program, const Block& block, const Cluster& cluster, GroupShapes& shapes);

}  // namespace altiplano
