#include "framework/search/sharding_problem_builder.hpp"

namespace altiplano {

double ShardingProblemBuilder::local_bytes(const Value& value, const ShardingSpec& spec, LayerId layer,
                                           DType dtype) const {
  const Shape local = padded_extents(normalized(spec, mesh(layer)), block_shape(value.id), mesh(layer));
  return static_cast<double>(num_elements(local) * size_of(dtype));
}

void ShardingProblemBuilder::add_bytes() {
  using Kind = ShardingProblem::ShareKind;
  for (const Parameter& p : graph_.parameters()) {
    const Value& value = graph_.value(p.value);
    const int node = out_.node_of_value_[value.id.index()];
    out_.shares_.push_back(share_of(Kind::kPersistent, value.layer, node, -1, 1, [&] { return storage_bytes(value); }));
  }
  for (const ParameterTraining& p : training_.parameters) {
    if (p.contributions.empty()) continue;
    const AccumulatorNode at = accumulator_node(p, p.contributions[0]);
    out_.shares_.push_back(
        share_of(Kind::kPersistent, at.layer, at.node, -1, 2, [&] { return accumulator_bytes(p, at); }));
  }
  const std::vector<bool> all(graph_.layers().size(), true);
  for (const LiveSet& set : live_sets(training_, all, question_.layer_class)) {
    out_.work_.emplace_back();
    for (const LiveValue& live : set) {
      const Value& value = graph_.value(live.value);
      if (!value.producer.is_valid()) continue;
      const auto output = static_cast<int>(output_index(graph_.op(value.producer), value.id));
      const auto share = share_of(Kind::kStash, graph_.op(value.producer).layer, source_node(value.id), -1, 3 + output,
                                  [&] { return value_bytes(value, value.dtype); });
      if (!live.is_stashed) out_.work_.back().push_back(share);
      if (live.is_stashed && out_.work_.size() == 1) out_.shares_.push_back(share);  // the same in every set
    }
  }
}

std::vector<double> ShardingProblemBuilder::storage_bytes(const Value& value) const {
  std::vector<double> bytes;
  auto training = training_of_.find(value.id);
  for (const ShardingSpec& spec : out_.specs_[to_index(out_.node_of_value_[value.id.index()])]) {
    bytes.push_back(local_bytes(value, spec, value.layer, value.dtype));
    if (training == training_of_.end()) continue;
    for (ValueId state : training->second->states)
      bytes.back() += local_bytes(value, optimizer_spec(value, spec), value.layer, graph_.value(state).dtype);
  }
  return bytes;
}

/// The sum of contributions lies as the first one does; from ZeRO stage 2 on, as the optimizer wants it.
ShardingProblemBuilder::AccumulatorNode ShardingProblemBuilder::accumulator_node(const ParameterTraining& training,
                                                                                 ValueId first) const {
  const int node = reduces_at_once() ? out_.node_of_value_[training.parameter.index()] : source_node(first);
  return {node, graph_.op(graph_.value(first).producer).layer, first};
}

std::vector<double> ShardingProblemBuilder::accumulator_bytes(const ParameterTraining& training,
                                                              const AccumulatorNode& at) const {
  const Value& parameter = graph_.value(training.parameter);
  const DType dtype =
      training.gradient.is_valid() ? graph_.value(training.gradient).dtype : graph_.value(at.first).dtype;
  if (!reduces_at_once()) return value_bytes(graph_.value(at.first), dtype);
  std::vector<double> bytes;
  for (const ShardingSpec& spec : out_.specs_[to_index(at.node)])
    bytes.push_back(local_bytes(parameter, optimizer_spec(parameter, spec), at.layer, dtype));
  return bytes;
}

std::vector<double> ShardingProblemBuilder::value_bytes(const Value& value, DType dtype) const {
  const size_t size = out_.problem_.nodes[to_index(source_node(value.id))].size();
  std::vector<double> bytes;
  for (size_t k = 0; k < size; ++k)
    bytes.push_back(local_bytes(value, source_spec(value.id, k), graph_.op(value.producer).layer, dtype));
  return bytes;
}

void ShardingProblemBuilder::add_memory() {
  for (const ShardingMemory& memory : question_.memory) {
    out_.first_row_.push_back(out_.problem_.rows.size());
    std::map<int, std::vector<double>> lasting;
    add_persistent(memory, lasting);
    for (const LiveSet& set : live_sets(training_, memory.layers, question_.layer_class)) {
      auto uses = lasting;
      for (const LiveValue& live : set) add_live(live, memory, uses);
      LimitRow row{static_cast<double>(memory.limit.value), {}};
      for (auto& [node, use] : uses) row.terms.push_back({node, std::move(use)});
      out_.problem_.rows.push_back(std::move(row));
    }
  }
  out_.first_row_.push_back(out_.problem_.rows.size());
}

std::vector<double>& ShardingProblemBuilder::use_of(std::map<int, std::vector<double>>& uses, int node) const {
  std::vector<double>& use = uses[node];
  use.resize(out_.problem_.nodes[to_index(node)].size(), 0);
  return use;
}

void ShardingProblemBuilder::add_persistent(const ShardingMemory& memory, std::map<int, std::vector<double>>& uses) {
  for (const Parameter& p : graph_.parameters()) {
    const Value& value = graph_.value(p.value);
    const auto& users = users_[value.id.index()];
    const auto user =
        std::find_if(users.begin(), users.end(), [&](OpId id) { return memory.layers[graph_.op(id).layer.index()]; });
    if (user == users.end()) continue;
    const LayerId layer = graph_.op(*user).layer;
    const int node = out_.node_of_value_[value.id.index()];
    std::vector<double>& use = use_of(uses, node);
    auto training = training_of_.find(value.id);
    for (size_t k = 0; k < use.size(); ++k) {
      const ShardingSpec& spec = out_.specs_[to_index(node)][k];
      use[k] += local_bytes(value, spec, layer, value.dtype);
      if (training == training_of_.end() || !memory.layers[value.layer.index()]) continue;
      for (ValueId state : training->second->states)
        use[k] += local_bytes(value, optimizer_spec(value, spec), layer, graph_.value(state).dtype);
    }
    if (training != training_of_.end()) add_accumulator(*training->second, memory, uses);
  }
}

void ShardingProblemBuilder::add_accumulator(const ParameterTraining& p, const ShardingMemory& memory,
                                             std::map<int, std::vector<double>>& uses) {
  for (ValueId id : p.contributions) {
    const AccumulatorNode at = accumulator_node(p, id);
    if (!memory.layers[at.layer.index()]) continue;
    const std::vector<double> bytes = accumulator_bytes(p, at);
    std::vector<double>& use = use_of(uses, at.node);
    for (size_t k = 0; k < use.size(); ++k) use[k] += bytes[k];
    return;  // further contributions are added to it
  }
}

void ShardingProblemBuilder::add_live(const LiveValue& live, const ShardingMemory& memory,
                                      std::map<int, std::vector<double>>& uses) const {
  const Value& value = graph_.value(live.value);
  const LayerId layer =
      value.producer.is_valid() ? graph_.op(value.producer).layer : graph_.op(users_[value.id.index()][0]).layer;
  const double copies = live.is_stashed ? memory.microbatches_in_flight : 1;
  std::vector<double>& use = use_of(uses, source_node(value.id));
  for (size_t k = 0; k < use.size(); ++k)
    use[k] += copies * local_bytes(value, source_spec(value.id, k), layer, value.dtype);
}

}  // namespace altiplano
