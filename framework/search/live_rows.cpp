#include "framework/search/live_rows.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace altiplano {

namespace {

class LiveSets {
 public:
  LiveSets(const TrainingGraph& training, const std::vector<bool>& layers, const std::vector<int>& layer_class)
      : graph_(training.graph), layers_(layers), layer_class_(layer_class) {}

  std::vector<LiveSet> run(size_t most_sets) {
    find_stashed();
    std::vector<std::set<ValueId>> sets;
    for (Phase phase : {Phase::kForward, Phase::kBackward}) add_phase(phase, sets);
    keep_maximal(sets);
    auto elements = [&](const std::set<ValueId>& set) {
      double sum = 0;
      for (ValueId id : set) sum += static_cast<double>(num_elements(graph_.value(id).shape));
      return sum;
    };
    std::stable_sort(sets.begin(), sets.end(), [&](const auto& a, const auto& b) { return elements(a) > elements(b); });
    if (sets.size() > most_sets) sets.resize(most_sets);
    if (sets.empty()) sets.emplace_back();
    std::vector<LiveSet> out;
    for (const auto& set : sets) {
      std::set<LiveValue> all;
      for (ValueId id : stashed_) all.insert({id, true});
      for (ValueId id : set) all.insert({id, false});
      out.emplace_back(all.begin(), all.end());
    }
    return out;
  }

 private:
  bool is_here(const Op& op) const { return layers_[op.layer.index()]; }

  /// Forward values that a backward op of the stage reads.
  void find_stashed() {
    for (const Op& op : graph_.ops()) {
      if (op.phase != Phase::kBackward || !is_here(op)) continue;
      for (ValueId id : op.inputs) {
        const Value& value = graph_.value(id);
        const bool is_forward =
            value.producer.is_valid() ? graph_.op(value.producer).phase == Phase::kForward : value.role == Role::kInput;
        if (is_forward) stashed_.insert(id);
      }
    }
  }

  /// The set at every op of one layer of each class: what was made before or by it and is read by it or later.
  void add_phase(Phase phase, std::vector<std::set<ValueId>>& sets) const {
    std::map<ValueId, size_t> last_use;
    const auto& ops = graph_.ops();
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].phase != phase || !is_here(ops[i])) continue;
      for (ValueId id : ops[i].inputs) last_use[id] = i;
      for (ValueId id : ops[i].outputs) last_use[id] = i;
    }
    std::map<int, LayerId> representative;
    std::set<ValueId> live;
    for (size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      if (op.phase != phase || !is_here(op)) continue;
      for (ValueId id : op.inputs)
        if (counts(id)) live.insert(id);
      for (ValueId id : op.outputs)
        if (counts(id)) live.insert(id);
      const int layer_class = layer_class_[op.layer.index()];
      if (representative.emplace(layer_class, op.layer).first->second == op.layer) sets.push_back(live);
      std::erase_if(live, [&](ValueId id) { return last_use.at(id) <= i; });
    }
  }

  bool counts(ValueId id) const {
    return !stashed_.count(id) && graph_.value(id).role != Role::kParameter && graph_.value(id).role != Role::kInput;
  }

  static void keep_maximal(std::vector<std::set<ValueId>>& sets) {
    std::vector<std::set<ValueId>> kept;
    for (size_t i = 0; i < sets.size(); ++i) {
      bool is_part = false;
      for (size_t j = 0; j < sets.size() && !is_part; ++j)
        is_part = i != j && std::includes(sets[j].begin(), sets[j].end(), sets[i].begin(), sets[i].end()) &&
                  (sets[j].size() > sets[i].size() || j < i);
      if (!is_part) kept.push_back(sets[i]);
    }
    sets = std::move(kept);
  }

  const Graph& graph_;
  const std::vector<bool>& layers_;
  const std::vector<int>& layer_class_;
  std::set<ValueId> stashed_;
};

}  // namespace

std::vector<LiveSet> live_sets(const TrainingGraph& training, const std::vector<bool>& layers,
                               const std::vector<int>& layer_class, size_t most_sets) {
  return LiveSets(training, layers, layer_class).run(most_sets);
}

}  // namespace altiplano
