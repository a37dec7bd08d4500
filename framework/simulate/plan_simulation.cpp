#include "framework/simulate/plan_simulation.hpp"

namespace altiplano {

Result<SimulatedPrograms> lower_for_simulation(const TrainingGraph& graph, const Plan& plan, const Timetable& timetable,
                                               const LoweringOptions& options, bool each_rank) {
  const Binding binding = Binding::identity(plan.num_slots());
  const bool may_be_each = plan.num_slots() <= kMostRanksEach;
  SimulatedPrograms lowered;
  if (!each_rank || !may_be_each) {
    for (const PlanStage& stage : plan.stages) {
      lowered.alike.emplace_back();
      for (SlotId slot : stage.slots) lowered.alike.back().push_back(binding.rank_of_slot[slot.index()]);
    }
    LoweringOptions first = options;
    first.only_first_of_stage = true;
    ALTIPLANO_ASSIGN(lowered.programs, lower(graph, plan, timetable, binding, first));
    if (!may_be_each || stand_for_all(lowered.programs, lowered.alike)) return lowered;
  }
  ALTIPLANO_ASSIGN(lowered.programs, lower(graph, plan, timetable, binding, options));
  lowered.alike.clear();
  for (const Program& program : lowered.programs) lowered.alike.push_back({program.rank});
  return lowered;
}

Result<ProgramSimulation> simulate_plan(const TrainingGraph& graph, const Plan& plan, const Cluster& cluster,
                                        const Timetable& timetable, const LoweringOptions& options) {
  ALTIPLANO_ASSIGN(const SimulatedPrograms lowered, lower_for_simulation(graph, plan, timetable, options));
  return simulate_programs(lowered.programs, lowered.alike, cluster);
}

}  // namespace altiplano
