#include "framework/search/sharding_problem_builder.hpp"

namespace altiplano {

double ShardingProblemBuilder::reshard_cost(size_t mesh_number, const ShardingSpec& from, const ShardingSpec& to,
                                            const Shape& shape, DType dtype, bool in_bucket) {
  if (from == to) return 0;
  const auto key = std::tuple(mesh_number, from, to, shape, dtype, in_bucket);
  auto known = paths_.find(key);
  if (known != paths_.end()) return known->second;
  auto path = reshard_path(from, to, shape, question_.meshes[mesh_number]);
  double cost = path.is_ok() ? 0 : kForbidden;
  if (path.is_ok())
    for (const ReshardStep& step : *path) cost += prices_.reshard(mesh_number, step, shape, dtype, in_bucket);
  return paths_[key] = cost;
}

ShardingSpec ShardingProblemBuilder::source_spec(ValueId id, size_t choice) const {
  const Value& value = graph_.value(id);
  if (const int node = out_.node_of_value_[id.index()]; node >= 0) return out_.specs_[to_index(node)][choice];
  const Op& producer = graph_.op(value.producer);
  const Strategy& strategy = out_.strategies_[to_index(out_.node_of_op_[producer.id.index()])][choice];
  return normalized(strategy.outputs[output_index(producer, id)], mesh(producer.layer));
}

int ShardingProblemBuilder::source_node(ValueId id) const {
  const int node = out_.node_of_value_[id.index()];
  return node >= 0 ? node : out_.node_of_op_[graph_.value(id).producer.index()];
}

void ShardingProblemBuilder::add_uses(const Op& op) {
  const MeshShape& m = mesh(op.layer);
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const ValueId id = op.inputs[i];
    const Shape shape = block_shape(id);
    const int node = out_.node_of_op_[op.id.index()];
    add_edge(source_node(id), node, op.layer, EdgeKind::kUse, i, [&](size_t from, size_t to) {
      const ShardingSpec& use = out_.strategies_[to_index(node)][to].inputs[i];
      return question_.microbatch_weight * reshard_cost(mesh_index(op.layer), normalized(source_spec(id, from), m),
                                                        normalized(use, m), shape, graph_.value(id).dtype);
    });
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const ValueId id = op.outputs[i];
    const int stored = out_.node_of_value_[id.index()], node = out_.node_of_op_[op.id.index()];
    if (stored < 0) continue;
    add_edge(node, stored, op.layer, EdgeKind::kStore, i, [&](size_t from, size_t to) {
      return question_.microbatch_weight *
             reshard_cost(mesh_index(op.layer), normalized(out_.strategies_[to_index(node)][from].outputs[i], m),
                          out_.specs_[to_index(stored)][to], block_shape(id), graph_.value(id).dtype);
    });
  }
}

void ShardingProblemBuilder::add_gradients() {
  for (const ParameterTraining& p : training_.parameters) {
    if (p.contributions.empty()) continue;
    if (reduces_at_once()) {
      for (ValueId id : p.contributions) add_gradient(p, id, question_.microbatch_weight);
      continue;
    }
    add_gradient(p, p.contributions[0], question_.step_weight);
    for (size_t c = 1; c < p.contributions.size(); ++c)
      add_further_contribution(p.contributions[c], graph_.value(p.contributions[0]));
  }
}

void ShardingProblemBuilder::add_gradient(const ParameterTraining& training, ValueId contribution, double weight) {
  const Value& parameter = graph_.value(training.parameter);
  const Value& value = graph_.value(contribution);
  const DType dtype = training.gradient.is_valid() ? graph_.value(training.gradient).dtype : value.dtype;
  const int storage = out_.node_of_value_[training.parameter.index()];
  const LayerId layer = graph_.op(value.producer).layer;
  add_edge(source_node(contribution), storage, layer, EdgeKind::kGradient, 0, [&](size_t from, size_t to) {
    const ShardingSpec spec = optimizer_spec(parameter, out_.specs_[to_index(storage)][to]);
    return weight * reshard_cost(mesh_index(layer), source_spec(contribution, from), normalized(spec, mesh(layer)),
                                 parameter.shape, dtype, true);
  });
}

void ShardingProblemBuilder::add_further_contribution(ValueId id, const Value& first) {
  const LayerId layer = graph_.op(graph_.value(id).producer).layer;
  const MeshShape& m = mesh(layer);
  add_edge(source_node(id), source_node(first.id), layer, EdgeKind::kFurtherGradient, 0, [&](size_t from, size_t to) {
    return question_.microbatch_weight * reshard_cost(mesh_index(layer), source_spec(id, from),
                                                      normalized(source_spec(first.id, to), m), first.shape,
                                                      graph_.value(id).dtype);
  });
}

}  // namespace altiplano
