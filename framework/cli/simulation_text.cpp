#include "framework/cli/simulation_text.hpp"

#include "framework/base/text.hpp"
#include "framework/simulate/plan_simulation.hpp"
#include "framework/simulate/timeline.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {

Result<ProgramSimulation> simulate_for(const Job& job, const Plan& plan) {
  ALTIPLANO_ASSIGN(const Timetable timetable, build_timetable(plan));
  return simulate_plan(*job.graph, plan, job.cluster, timetable, job.device->lowering());
}

std::vector<std::string> stage_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanStage& stage : plan.stages) names.push_back(stage.name);
  return names;
}

StepParts parts_of(const ProgramSimulation& simulation) {
  StepParts sum;
  double ranks = 0;
  for (const RankTimeline& rank : simulation.ranks) {
    sum.busy += rank.busy * rank.num_alike;
    sum.exposed += rank.exposed * rank.num_alike;
    sum.bubble += rank.bubble * rank.num_alike;
    ranks += rank.num_alike;
  }
  return {sum.busy * (1 / ranks), sum.exposed * (1 / ranks), sum.bubble * (1 / ranks)};
}

std::string step_text(const ProgramSimulation& simulation) {
  const StepParts parts = parts_of(simulation);
  return fmt::format("{} = computing {} + exposed communication {} + bubble {}", to_string(simulation.step),
                     to_string(parts.busy), to_string(parts.exposed), to_string(parts.bubble));
}

std::string traffic_text(const ProgramSimulation& simulation, const Cluster& cluster) {
  std::vector<std::string> levels;
  for (size_t l = 0; l < cluster.levels.size(); ++l)
    if (simulation.sent_per_level[l] > 0)
      levels.push_back(fmt::format("{} {}", cluster.levels[l].name,
                                   to_string(Bytes(static_cast<int64_t>(simulation.sent_per_level[l])))));
  return levels.empty() ? "none" : join(levels, ", ") + " a step, by the level that is crossed";
}

Status write_timeline(const std::string& path, const Plan& plan, const ProgramSimulation& simulation) {
  const std::string title = fmt::format("{}: {}, {}", plan.model_name, plan_summary(plan), to_string(simulation.step));
  return write_named_file(path, timeline_svg(simulation, stage_names(plan), title));
}

}  // namespace altiplano
