#include "framework/simulate/plan_estimate.hpp"

#include <algorithm>

#include "framework/program/arena.hpp"
#include "framework/simulate/program_prices.hpp"
#include "framework/simulate/shared_time.hpp"
#include "framework/simulate/simulate.hpp"
#include "framework/simulate/simulate_programs.hpp"

namespace altiplano {

MemoryBreakdown memory_of(const Program& program) {
  MemoryBreakdown memory;
  for (const PersistentTensor& tensor : program.tensors) {
    Bytes bytes(align_up(program.buffer(tensor.buffer).bytes));
    switch (tensor.role) {
      case TensorRole::kParameter:
      case TensorRole::kParameterCopy:
        memory.weights += bytes;
        break;
      case TensorRole::kGradient:
        memory.gradients += bytes;
        break;
      case TensorRole::kOptimizerState:
      case TensorRole::kMaster:
        memory.optimizer += bytes;
        break;
      case TensorRole::kTotals:
        break;
    }
  }
  memory.activations = program.peak() - memory.weights - memory.gradients - memory.optimizer;
  return memory;
}

namespace {

Seconds boundary_time(const Program& program, const Block& block, const Cluster& cluster) {
  Seconds time;
  for (const Instruction& i : block.instructions)
    if (const auto* send = std::get_if<SendInstruction>(&i.what)) time += message_time(program, *send, cluster);
  return time;
}

const Block& find_block(const Program& program, ActionKind kind, bool last) {
  const Block* found = nullptr;
  for (const Block& block : program.blocks)
    if (block.kind == kind && (last || !found)) found = &block;
  ALTIPLANO_ASSERT(found, "no block of kind {}", letter_of(kind));
  return *found;
}

/// The slowest rank of a stage decides.
StageCosts stage_costs(const std::vector<Program>& programs, StageId stage, const Cluster& cluster,
                       GroupShapes& shapes) {
  StageCosts costs;
  for (const Program& program : programs) {
    if (program.stage != stage) continue;
    costs.forward =
        std::max(costs.forward, block_time(program, find_block(program, ActionKind::kForward, true), cluster, shapes));
    costs.backward = std::max(costs.backward,
                              block_time(program, find_block(program, ActionKind::kBackward, true), cluster, shapes));
    costs.update =
        std::max(costs.update, block_time(program, find_block(program, ActionKind::kUpdate, true), cluster, shapes));
  }
  return costs;
}

/// Of actions that do not hold each other up but by their data, with the update of all at the end.
Status predict_by_timetable(const Plan& plan, const Cluster& cluster, const Timetable& timetable,
                            const std::vector<Program>& programs, PlanPrediction& prediction) {
  SimulationCosts costs;
  GroupShapes shapes(cluster);
  Seconds update;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    costs.stages.push_back(stage_costs(programs, StageId(static_cast<int64_t>(s)), cluster, shapes));
    update = std::max(update, costs.stages.back().update);
    costs.stages.back().update = Seconds(0);
  }
  for (size_t s = 0; s + 1 < plan.stages.size(); ++s) {
    Seconds slowest;
    for (const Program& program : programs)
      if (program.stage.index() == s)
        slowest = std::max(slowest, boundary_time(program, find_block(program, ActionKind::kForward, true), cluster));
    costs.transfer.push_back(slowest);
  }
  ALTIPLANO_ASSIGN(const Simulation simulation, simulate_timetable(timetable, costs));
  prediction.step = simulation.step + update;
  prediction.bubble = simulation.bubble;
  return Status::ok();
}

/// Of ranks that hold each other up.
Status predict_by_programs(const Plan& plan, const Cluster& cluster, const std::vector<Program>& programs,
                           PlanPrediction& prediction) {
  const bool is_preview = static_cast<int>(programs.size()) < plan.num_slots();
  std::vector<std::vector<RankId>> alike;
  for (const Program& program : programs) {
    alike.push_back({program.rank});
    if (!is_preview) continue;
    alike.back().clear();
    for (SlotId slot : plan.stages[program.stage.index()].slots) alike.back().emplace_back(slot.value);
  }
  ALTIPLANO_ASSIGN(const ProgramSimulation simulation, simulate_programs(programs, alike, cluster));
  double bubble = 0, all = 0;
  for (const RankTimeline& rank : simulation.ranks) {
    bubble += rank.bubble.value * rank.num_alike;
    all += simulation.step.value * rank.num_alike;
  }
  prediction.step = simulation.step;
  prediction.bubble = all > 0 ? bubble / all : 0;
  return Status::ok();
}

}  // namespace

Seconds block_time(const Program& program, const Block& block, const Cluster& cluster, GroupShapes& shapes) {
  Seconds time;
  for (const Instruction& i : block.instructions) {
    time += Seconds(work_time(program, i, cluster).alone());
    if (const auto* call = std::get_if<CollectiveInstruction>(&i.what)) time += collective_time(program, *call, shapes);
  }
  return time;
}

Result<PlanEstimate> estimate_plan(const TrainingGraph& graph, const Plan& plan, const Cluster& cluster,
                                   const Timetable& timetable, const LoweringOptions& options) {
  ALTIPLANO_ASSIGN(auto programs, lower(graph, plan, timetable, Binding::identity(plan.num_slots()), options));
  return estimate_programs(graph, plan, cluster, timetable, programs);
}

Result<PlanEstimate> estimate_programs(const TrainingGraph& graph, const Plan& plan, const Cluster& cluster,
                                       const Timetable& timetable, const std::vector<Program>& programs) {
  PlanEstimate estimate;
  const bool is_preview = static_cast<int>(programs.size()) < plan.num_slots();
  estimate.prediction.peak_memory.resize(plan.stages.size());
  for (const Program& program : programs) {
    MemoryBreakdown memory = memory_of(program);
    const size_t times = is_preview ? plan.stages[program.stage.index()].slots.size() : 1;
    auto add = [&](std::vector<Bytes>& list, Bytes bytes) { list.insert(list.end(), times, bytes); };
    add(estimate.peak_per_rank, program.peak());
    add(estimate.weights_per_rank, memory.weights);
    add(estimate.gradients_per_rank, memory.gradients);
    add(estimate.optimizer_per_rank, memory.optimizer);
    add(estimate.activations_per_rank, memory.activations);
    Bytes& stage_peak = estimate.prediction.peak_memory[program.stage.index()];
    stage_peak = std::max(stage_peak, program.peak());
  }
  const bool hold_each_other_up = !cluster.device.overlaps_communication || SharedTime::is_needed(cluster.device);
  ALTIPLANO_RETURN_IF_ERROR(hold_each_other_up
                                ? predict_by_programs(plan, cluster, programs, estimate.prediction)
                                : predict_by_timetable(plan, cluster, timetable, programs, estimate.prediction));
  const Shape& input = graph.graph.value(graph.inputs[0]).shape;
  estimate.prediction.tokens_per_second =
      static_cast<double>(num_elements(input)) / std::max(1e-12, estimate.prediction.step.value);
  return estimate;
}

}  // namespace altiplano
