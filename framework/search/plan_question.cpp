#include "framework/search/plan_question.hpp"

#include <algorithm>

#include "framework/base/text.hpp"

namespace altiplano {

namespace {

/// Storage that the plan has for parameters already, which is what the job file says.
std::map<ValueId, ShardingSpec> fixed_storage(const Graph& graph, const Plan& plan) {
  std::map<ValueId, ShardingSpec> fixed;
  for (const Parameter& p : graph.parameters())
    if (const ShardingSpec* spec = plan.find_spec(graph.value(p.value).name)) fixed[p.value] = *spec;
  return fixed;
}

/// Layers whose parameters are fixed differently do not choose alike.
void split_classes(const Graph& graph, const std::map<ValueId, ShardingSpec>& fixed, std::vector<int>& classes) {
  std::vector<std::string> texts(classes.size());
  for (const auto& [id, spec] : fixed) {
    const Value& value = graph.value(id);
    texts[value.layer.index()] +=
        value.name.substr(std::min(value.name.size(), graph.layer_name(value.layer).size())) + spec.to_string();
  }
  std::map<std::pair<int, std::string>, int> known;
  for (size_t l = 0; l < classes.size(); ++l)
    classes[l] = known.emplace(std::pair(classes[l], texts[l]), static_cast<int>(known.size())).first->second;
}

}  // namespace

PlanMeshes meshes_of(const Plan& plan) {
  PlanMeshes out;
  for (const PlanStage& stage : plan.stages) {
    const auto known = std::find(out.meshes.begin(), out.meshes.end(), stage.mesh);
    out.mesh_of_stage.push_back(static_cast<size_t>(known - out.meshes.begin()));
    if (known != out.meshes.end()) continue;
    out.meshes.push_back(stage.mesh);
    out.devices.emplace_back();
    for (SlotId slot : stage.slots) out.devices.back().push_back(slot.value);
  }
  return out;
}

std::vector<int> microbatches_in_flight(const Timetable& timetable) {
  std::vector<int> most(static_cast<size_t>(timetable.num_stages), 1);
  for (size_t w = 0; w < timetable.workers.size(); ++w) {
    std::map<int, int> now;
    for (const Action& action : timetable.workers[w]) {
      const int stage = timetable.chunk_stage[w][static_cast<size_t>(action.chunk)].value;
      if (action.kind == ActionKind::kForward)
        most[static_cast<size_t>(stage)] = std::max(most[static_cast<size_t>(stage)], ++now[stage]);
      if (action.kind == ActionKind::kBackward) --now[stage];
    }
  }
  return most;
}

ShardingQuestion question_of(const TrainingGraph& training, const Plan& plan, const Timetable& timetable,
                             const PlanMeshes& meshes, Bytes memory, const GraphFacts& facts) {
  const Graph& graph = training.graph;
  const std::vector<int> in_flight = microbatches_in_flight(timetable);
  const std::vector<StageId> stages = stage_of_layers(plan, graph);
  ShardingQuestion question;
  question.training = &training;
  question.facts = &facts;
  question.meshes = meshes.meshes;
  for (StageId stage : stages) question.mesh_of_layer.push_back(meshes.mesh_of_stage[stage.index()]);
  question.layer_class = classes_of_layers(facts.layer_signatures, question.mesh_of_layer);
  question.fixed = fixed_storage(graph, plan);
  split_classes(graph, question.fixed, question.layer_class);
  question.block_batch = plan.microbatch * plan.data_degree();
  const auto num_stages = static_cast<double>(plan.stages.size());
  question.microbatch_weight = (plan.num_microbatches + num_stages - 1) / num_stages;
  question.step_weight = 1 / num_stages;
  question.zero = plan.stages[0].zero;
  for (size_t s = 0; s < plan.stages.size() && memory > Bytes(0); ++s) {
    question.memory.push_back({std::vector<bool>(graph.layers().size()), in_flight[s], memory});
    for (size_t l = 0; l < stages.size(); ++l) question.memory[s].layers[l] = stages[l].index() == s;
  }
  return question;
}

}  // namespace altiplano
