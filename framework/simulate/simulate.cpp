#include "framework/simulate/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

namespace altiplano {
namespace {

bool is_cost(Seconds cost) {
  return std::isfinite(cost.value) && cost.value >= 0;
}

Status check_costs(const Timetable& table, const SimulationCosts& costs) {
  auto stages = static_cast<size_t>(table.num_stages);
  if (costs.stages.size() != stages) {
    return invalid_argument("simulation: costs of {} stages for a timetable of {}", costs.stages.size(), stages);
  }
  if (!costs.transfer.empty() && costs.transfer.size() != stages - 1) {
    return invalid_argument("simulation: {} transfer costs for {} boundaries between {} stages", costs.transfer.size(),
                            stages - 1, stages);
  }
  for (size_t s = 0; s < stages; ++s) {
    const StageCosts& c = costs.stages[s];
    for (Seconds cost : {c.forward, c.backward, c.backward_weight, c.recompute, c.reduce, c.update}) {
      if (!is_cost(cost))
        return invalid_argument("simulation: stage {} has the cost {} s; a cost is finite and not negative", s,
                                cost.value);
    }
  }
  for (size_t s = 0; s < costs.transfer.size(); ++s) {
    if (!is_cost(costs.transfer[s])) {
      return invalid_argument(
          "simulation: a transfer between stages {} and {} costs {} s; a cost is finite and not negative", s, s + 1,
          costs.transfer[s].value);
    }
  }
  return Status::ok();
}

Seconds cost_of(ActionKind kind, const StageCosts& costs) {
  switch (kind) {
    case ActionKind::kForward:
      return costs.forward;
    case ActionKind::kBackward:
      return costs.backward;
    case ActionKind::kBackwardWeight:
      return costs.backward_weight;
    case ActionKind::kRecompute:
      return costs.recompute;
    case ActionKind::kReduce:
      return costs.reduce;
    case ActionKind::kUpdate:
      return costs.update;
    case ActionKind::kValidate:
      break;  // verify_timetable refuses it
  }
  ALTIPLANO_ASSERT(false, "action kind {} has no cost", letter_of(kind));
}

class Simulator {
 public:
  Simulator(const Timetable& table, const SimulationCosts& costs) : table_(table), costs_(costs) {
    result_.timelines.resize(table.workers.size());
    result_.busy.resize(table.workers.size());
    for (const auto& edge : table.after) {
      edges_.emplace(std::pair(edge.to_worker, edge.to_index), std::pair(edge.from_worker, edge.from_index));
    }
  }

  Simulation run() {
    size_t num_left = 0;
    for (const auto& list : table_.workers) num_left += list.size();
    while (num_left > 0) {
      size_t num_before = num_left;
      for (size_t w = 0; w < table_.workers.size(); ++w) {
        while (do_next(w)) --num_left;
      }
      ALTIPLANO_ASSERT(num_left < num_before, "a verified timetable stands still");
    }
    sum_up();
    return std::move(result_);
  }

 private:
  struct Done {
    size_t worker = 0;
    Seconds end;
  };

  int stage_of(size_t worker, const Action& action) const {
    return table_.chunk_stage[worker][static_cast<size_t>(action.chunk)].value;
  }

  /// When the message that `action` needs is there: 0 where it needs none, nothing while its producer is not done.
  std::optional<Seconds> arrival(size_t worker, const Action& action) const {
    bool is_forward = action.kind == ActionKind::kForward;
    if (!is_forward && action.kind != ActionKind::kBackward) return Seconds(0);
    int stage = stage_of(worker, action);
    int source = is_forward ? stage - 1 : stage + 1;
    if (source < 0 || source >= table_.num_stages) return Seconds(0);
    auto at = done_.find({action.kind, source, action.microbatch});
    if (at == done_.end()) return std::nullopt;
    if (at->second.worker == worker || costs_.transfer.empty()) return at->second.end;
    return at->second.end + costs_.transfer[static_cast<size_t>(std::min(stage, source))];
  }

  /// When the workers that the action's edges name are done with what they name.
  std::optional<Seconds> edges_met(size_t worker, size_t index) const {
    Seconds latest;
    auto [first, last] = edges_.equal_range({static_cast<int>(worker), static_cast<int>(index)});
    for (auto at = first; at != last; ++at) {
      const auto& timeline = result_.timelines[static_cast<size_t>(at->second.first)];
      auto from = static_cast<size_t>(at->second.second);
      if (from >= timeline.size()) return std::nullopt;
      latest = std::max(latest, timeline[from].end);
    }
    return latest;
  }

  bool do_next(size_t worker) {
    auto& timeline = result_.timelines[worker];
    if (timeline.size() == table_.workers[worker].size()) return false;
    const Action& action = table_.workers[worker][timeline.size()];
    auto data = arrival(worker, action);
    auto edges = edges_met(worker, timeline.size());
    if (!data || !edges) return false;
    Seconds free = timeline.empty() ? Seconds(0) : timeline.back().end;
    Seconds begin = std::max({free, *data, *edges});
    int stage = stage_of(worker, action);
    Seconds cost = cost_of(action.kind, costs_.stages[static_cast<size_t>(stage)]);
    timeline.push_back({action, begin, begin + cost});
    result_.busy[worker] += cost;
    done_[{action.kind, stage, action.microbatch}] = {worker, begin + cost};
    return true;
  }

  void sum_up() {
    double busy = 0;
    for (size_t w = 0; w < result_.timelines.size(); ++w) {
      busy += result_.busy[w].value;
      if (!result_.timelines[w].empty()) result_.step = std::max(result_.step, result_.timelines[w].back().end);
    }
    double all = result_.step.value * static_cast<double>(result_.timelines.size());
    result_.bubble = all > 0 ? std::max(0.0, 1 - busy / all) : 0;
  }

  const Timetable& table_;
  const SimulationCosts& costs_;
  Simulation result_;
  std::map<std::tuple<ActionKind, int, int>, Done> done_;  ///< by kind, stage, microbatch
  std::multimap<std::pair<int, int>, std::pair<int, int>> edges_;
};

}  // namespace

Result<Simulation> simulate_timetable(const Timetable& timetable, const SimulationCosts& costs) {
  ALTIPLANO_RETURN_IF_ERROR(verify_timetable(timetable));
  ALTIPLANO_RETURN_IF_ERROR(check_costs(timetable, costs));
  return Simulator(timetable, costs).run();
}

}  // namespace altiplano
