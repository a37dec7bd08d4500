#include "framework/program/lowering.hpp"

#include "framework/program/rank_kinds.hpp"
#include "framework/program/rank_lowering.hpp"

namespace altiplano {

namespace {

Status check_timetable(const Plan& plan, const Timetable& timetable) {
  if (timetable.num_stages != static_cast<int>(plan.stages.size()) || timetable.workers.size() != plan.stages.size())
    return invalid_argument("schedule {} made {} stages on {} workers, the plan has {} stages", plan.schedule,
                            timetable.num_stages, timetable.workers.size(), plan.stages.size());
  if (timetable.num_microbatches != plan.num_microbatches)
    return invalid_argument("schedule {} made {} microbatches, the plan has {}", plan.schedule,
                            timetable.num_microbatches, plan.num_microbatches);
  for (size_t w = 0; w < timetable.workers.size(); ++w) {
    if (timetable.chunk_stage[w].size() != 1 || timetable.chunk_stage[w][0] != StageId(static_cast<int64_t>(w)))
      return invalid_argument(
          "schedule {} gives worker {} other chunks than stage {}; only one chunk per worker can be run", plan.schedule,
          w, w);
    for (const Action& action : timetable.workers[w])
      if (action.kind != ActionKind::kForward && action.kind != ActionKind::kBackward)
        return invalid_argument("schedule {} uses action {}, which cannot be run", plan.schedule, action.to_string());
  }
  return Status::ok();
}

/// Calls visit(context, stage) for every stage.
template <typename Visit>
Status for_each_stage(const TrainingGraph& graph, const Plan& plan, const Timetable& timetable, const Binding& binding,
                      const LoweringOptions& options, Visit visit) {
  ALTIPLANO_RETURN_IF_ERROR(check_timetable(plan, timetable));
  if (static_cast<int>(binding.rank_of_slot.size()) != plan.num_slots())
    return invalid_argument("the binding has {} ranks, the plan {} slots", binding.rank_of_slot.size(),
                            plan.num_slots());
  ALTIPLANO_ASSIGN(ShardingAssignment assignment, assign_shardings(graph, plan, options.facts));
  const LoweringContext context(graph, plan, timetable, binding, std::move(assignment), options);
  for (size_t s = 0; s < plan.stages.size(); ++s)
    ALTIPLANO_RETURN_IF_ERROR(visit(context, StageId(static_cast<int64_t>(s))));
  return Status::ok();
}

/// Calls make(context, stage, place in the stage's mesh) for every slot.
template <typename Make>
Status for_each_slot(const TrainingGraph& graph, const Plan& plan, const Timetable& timetable, const Binding& binding,
                     const LoweringOptions& options, Make make) {
  return for_each_stage(graph, plan, timetable, binding, options,
                        [&](const LoweringContext& context, StageId stage) -> Status {
                          const int most = options.only_first_of_stage ? 1 : context.mesh(stage).num_devices();
                          for (int i = 0; i < most; ++i) ALTIPLANO_RETURN_IF_ERROR(make(context, stage, i));
                          return Status::ok();
                        });
}

}  // namespace

Result<std::vector<Program>> lower(const TrainingGraph& graph, const Plan& plan, const Timetable& timetable,
                                   const Binding& binding, const LoweringOptions& options) {
  std::vector<Program> programs;
  if (!options.only_first_of_stage) programs.resize(static_cast<size_t>(plan.num_slots()));
  ALTIPLANO_RETURN_IF_ERROR(for_each_slot(graph, plan, timetable, binding, options,
                                          [&](const LoweringContext& context, StageId stage, int place) -> Status {
                                            ALTIPLANO_ASSIGN(Program program,
                                                             RankLowering(context, stage, place).run());
                                            const size_t rank = program.rank.index();
                                            if (options.only_first_of_stage)
                                              programs.push_back(std::move(program));
                                            else
                                              programs[rank] = std::move(program);
                                            return Status::ok();
                                          }));
  return programs;
}

Result<Representatives> lower_representatives(const TrainingGraph& graph, const Plan& plan, const Timetable& timetable,
                                              const Binding& binding, const LoweringOptions& options) {
  Representatives out;
  ALTIPLANO_RETURN_IF_ERROR(for_each_stage(
      graph, plan, timetable, binding, options, [&](const LoweringContext& context, StageId stage) -> Status {
        for (const std::vector<int>& places : places_by_kind(context, stage)) {
          ALTIPLANO_ASSIGN(Program program, RankLowering(context, stage, places[0]).run());
          out.programs.push_back(std::move(program));
          out.alike.emplace_back();
          for (int place : places) out.alike.back().push_back(context.rank_at(stage, place));
        }
        return Status::ok();
      }));
  return out;
}

Result<Program> lower_rank(const TrainingGraph& graph, const Plan& plan, const Timetable& timetable,
                           const Binding& binding, RankId rank, const LoweringOptions& options) {
  Program found;
  ALTIPLANO_RETURN_IF_ERROR(for_each_slot(graph, plan, timetable, binding, options,
                                          [&](const LoweringContext& context, StageId stage, int place) -> Status {
                                            if (context.rank_at(stage, place) != rank) return Status::ok();
                                            ALTIPLANO_ASSIGN(found, RankLowering(context, stage, place).run());
                                            return Status::ok();
                                          }));
  if (found.rank != rank || found.blocks.empty()) return invalid_argument("the binding has no rank {}", rank);
  return found;
}

}  // namespace altiplano
