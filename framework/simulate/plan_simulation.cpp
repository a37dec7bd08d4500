#include "framework/simulate/plan_simulation.hpp"

namespace altiplano {

Result<ProgramSimulation> simulate_plan(const TrainingGraph& graph, const Plan& plan, const Cluster& cluster,
                                        const Timetable& timetable, const LoweringOptions& options) {
  const Binding binding = Binding::identity(plan.num_slots());
  std::vector<std::vector<RankId>> alike;
  for (const PlanStage& stage : plan.stages) {
    alike.emplace_back();
    for (SlotId slot : stage.slots) alike.back().push_back(binding.rank_of_slot[slot.index()]);
  }
  LoweringOptions first = options;
  first.only_first_of_stage = true;
  ALTIPLANO_ASSIGN(auto programs, lower(graph, plan, timetable, binding, first));
  if (!stand_for_all(programs, alike) && plan.num_slots() <= kMostRanksEach) {
    ALTIPLANO_ASSIGN(programs, lower(graph, plan, timetable, binding, options));
    alike.clear();
    for (const Program& program : programs) alike.push_back({program.rank});
  }
  return simulate_programs(programs, alike, cluster);
}

}  // namespace altiplano
