#include "framework/search/sharding_problem.hpp"

#include "framework/search/sharding_problem_builder.hpp"

namespace altiplano {

Result<ShardingProblem> ShardingProblem::build(const ShardingQuestion& question, const ShardingPrices& prices) {
  return ShardingProblemBuilder(question, prices).run();
}

ChosenShardings ShardingProblem::chosen(const std::vector<int>& choices) const {
  ChosenShardings out;
  for (int node : node_of_op_) {
    out.strategies.emplace_back();
    if (node >= 0) out.strategies.back() = strategies_[to_index(node)][to_index(choices[to_index(node)])];
  }
  for (size_t v = 0; v < node_of_value_.size(); ++v) {
    const int node = node_of_value_[v];
    if (node < 0) continue;
    const ShardingSpec& spec = specs_[to_index(node)][to_index(choices[to_index(node)])];
    (is_parameter_[v] ? out.parameters : out.stored)[ValueId(static_cast<int64_t>(v))] = spec;
  }
  return out;
}

double ShardingProblem::value_of(const Share& share, const std::vector<int>& choices) const {
  const std::vector<double>& table = tables_[share.table];
  const auto a = to_index(choices[to_index(share.a)]);
  if (share.b < 0) return table[a];
  return table[a * problem_.nodes[to_index(share.b)].size() + to_index(choices[to_index(share.b)])];
}

ChoiceProblem ShardingProblem::with_priced_bytes(double per_byte, double in_flight) const {
  ChoiceProblem out = problem_;
  out.rows.clear();
  for (const Share& share : shares_) {
    if (share.kind != ShareKind::kPersistent && share.kind != ShareKind::kStash) continue;
    const double price = share.kind == ShareKind::kStash ? per_byte * in_flight : per_byte;
    const std::vector<double>& bytes = tables_[share.table];
    for (size_t k = 0; k < bytes.size(); ++k) out.nodes[to_index(share.a)][k] += price * bytes[k];
  }
  return out;
}

LayerShares ShardingProblem::shares(const std::vector<int>& choices) const {
  LayerShares out;
  for (auto* of_layer : {&out.microbatch, &out.step, &out.persistent, &out.stash}) of_layer->assign(num_layers_, 0);
  for (const Share& share : shares_) {
    const double value = value_of(share, choices);
    switch (share.kind) {
      case ShareKind::kMicrobatch:
        out.microbatch[share.layer.index()] += value / microbatch_weight_;
        break;
      case ShareKind::kStep:
        out.step[share.layer.index()] += value / step_weight_;
        break;
      case ShareKind::kPersistent:
        out.persistent[share.layer.index()] += value;
        break;
      case ShareKind::kStash:
        out.stash[share.layer.index()] += value;
        break;
    }
  }
  for (const auto& set : work_) {
    double bytes = 0;
    for (const Share& share : set) bytes += value_of(share, choices);
    out.work = std::max(out.work, bytes);
  }
  return out;
}

std::vector<int> classes_of_layers(const std::vector<uint64_t>& signatures, const std::vector<size_t>& mesh_of_layer) {
  std::map<std::pair<uint64_t, size_t>, int> known;
  std::vector<int> classes;
  for (size_t l = 0; l < signatures.size(); ++l)
    classes.push_back(
        known.emplace(std::pair(signatures[l], mesh_of_layer[l]), static_cast<int>(known.size())).first->second);
  return classes;
}

}  // namespace altiplano
