#include "framework/plan/plan.hpp"

#include "framework/base/text.hpp"

namespace altiplano {

int Plan::num_slots() const {
  int n = 0;
  for (const PlanStage& stage : stages) n += static_cast<int>(stage.slots.size());
  return n;
}

const ShardingSpec* Plan::find_spec(const std::string& value_name) const {
  for (const auto& [pattern, spec] : sharding)
    if (glob_match(pattern, value_name)) return &spec;
  return nullptr;
}

std::string Plan::where(const std::string& key) const {
  if (file.empty()) return {};
  auto at = places.find(key);
  if (at == places.end()) return fmt::format("{}: {}: ", file, key);
  return fmt::format("{}:{}:{}: {}: ", file, at->second.first, at->second.second, key);
}

Binding Binding::identity(int num_slots) {
  Binding binding;
  for (int i = 0; i < num_slots; ++i) binding.rank_of_slot.emplace_back(i);
  return binding;
}

void state_recompute(const TrainingGraph& graph, Plan& plan) {
  for (PlanStage& stage : plan.stages) {
    stage.recompute.clear();
    for (const std::string& layer : stage.layers)
      if (graph.recomputed.contains(layer)) stage.recompute.push_back(layer);
  }
}

void forget_shardings(Plan& plan) {
  plan.sharding.clear();
  plan.strategies.clear();
  plan.stored.clear();
  plan.predicted = {};
}

std::vector<StageId> stage_of_layers(const Plan& plan, const Graph& graph) {
  std::map<std::string, StageId> by_name;
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (const std::string& layer : plan.stages[s].layers) by_name[layer] = StageId(static_cast<int64_t>(s));
  std::vector<StageId> result;
  for (const std::string& layer : graph.layers()) {
    auto it = by_name.find(layer);
    result.push_back(it == by_name.end() ? StageId() : it->second);
  }
  return result;
}

}  // namespace altiplano
