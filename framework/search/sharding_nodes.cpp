#include <set>

#include "framework/plan/assignment.hpp"
#include "framework/search/sharding_problem_builder.hpp"
#include "framework/sharding/dims.hpp"

namespace altiplano {

namespace {

/// Every way to lay the axes of `axes` along dims, each axis on one dim or none; a dim takes an axis only where every
/// device gets something.
std::vector<ShardingSpec> layouts(const Shape& shape, const MeshShape& mesh, AxisSet axes) {
  std::vector<ShardingSpec> specs = {ShardingSpec::replicated(shape.size())};
  for (const auto& [axis, degree] : mesh.axes) {
    if (degree == 1 || !axes.contains(axis)) continue;
    const std::vector<ShardingSpec> before = specs;
    for (const ShardingSpec& spec : before) {
      const Shape local = padded_extents(spec, shape, mesh);
      for (size_t d = 0; d < shape.size(); ++d) {
        if (local[d] < degree) continue;
        specs.push_back(spec);
        specs.back().dims[d].push_back(axis);
      }
    }
  }
  return specs;
}

/// What the ZeRO stage makes of the specs, each once.
std::vector<ShardingSpec> stored_at_zero(std::vector<ShardingSpec> specs, const Shape& shape, const MeshShape& mesh,
                                         int zero) {
  std::vector<ShardingSpec> out;
  for (const ShardingSpec& spec : specs) {
    ShardingSpec stored = parameter_storage(spec, shape, mesh, zero);
    if (std::find(out.begin(), out.end(), stored) == out.end()) out.push_back(std::move(stored));
  }
  return out;
}

}  // namespace

Result<ShardingProblem> ShardingProblemBuilder::run() {
  if (question_.facts == nullptr) {
    ALTIPLANO_ASSIGN(own_facts_, GraphFacts::of(training_));
  }
  out_.num_layers_ = graph_.layers().size();
  out_.microbatch_weight_ = question_.microbatch_weight;
  out_.step_weight_ = question_.step_weight;
  out_.node_of_op_.assign(graph_.ops().size(), -1);
  out_.node_of_value_.assign(graph_.values().size(), -1);
  out_.is_parameter_.assign(graph_.values().size(), false);
  find_places();
  ALTIPLANO_RETURN_IF_ERROR(add_inputs_and_parameters());
  for (const Op& op : graph_.ops())
    if (op.phase != Phase::kUpdate) ALTIPLANO_RETURN_IF_ERROR(add_op(op));
  for (const Value& value : graph_.values()) add_stored(value);
  for (const Op& op : graph_.ops())
    if (op.phase != Phase::kUpdate) add_uses(op);
  add_gradients();
  add_bytes();
  for (auto& [nodes, edge] : edges_) out_.problem_.edges.push_back(std::move(edge));
  add_memory();
  return std::move(out_);
}

Shape ShardingProblemBuilder::block_shape(ValueId id) const {
  Shape shape = graph_.value(id).shape;
  const int batch = batch_dim_[id.index()];
  if (batch >= 0 && question_.block_batch > 0) shape[to_index(batch)] = question_.block_batch;
  return shape;
}

void ShardingProblemBuilder::find_places() {
  std::map<LayerId, int> num_ops, num_parameters;
  place_of_op_.assign(graph_.ops().size(), 0);
  users_.resize(graph_.values().size());
  for (const Op& op : graph_.ops()) {
    if (op.phase == Phase::kUpdate) continue;
    place_of_op_[op.id.index()] = num_ops[op.layer]++;
    for (ValueId id : op.inputs) users_[id.index()].push_back(op.id);
  }
  for (const Parameter& p : graph_.parameters())
    place_of_parameter_[p.value] = num_parameters[graph_.value(p.value).layer]++;
  for (const ParameterTraining& p : training_.parameters) {
    training_of_[p.parameter] = &p;
    for (ValueId id : p.contributions) contributes_to_[id] = p.parameter;
  }
}

int ShardingProblemBuilder::add_node(std::vector<double> costs) {
  out_.problem_.nodes.push_back(std::move(costs));
  out_.strategies_.emplace_back();
  out_.specs_.emplace_back();
  return static_cast<int>(out_.problem_.nodes.size()) - 1;
}

int ShardingProblemBuilder::shared_node(const std::tuple<char, int, int, int>& key) {
  auto known = shared_.find(key);
  if (known == shared_.end()) return -1;
  const std::vector<double>& costs = costs_of_one_.at(known->second);
  for (size_t k = 0; k < costs.size(); ++k) out_.problem_.nodes[to_index(known->second)][k] += costs[k];
  return known->second;
}

int ShardingProblemBuilder::share_node(const std::tuple<char, int, int, int>& key, const std::vector<double>& costs) {
  const int node = add_node(costs);
  costs_of_one_[node] = costs;
  return shared_[key] = node;
}

// ---- inputs of the model, parameters ----

Status ShardingProblemBuilder::add_inputs_and_parameters() {
  for (ValueId id : training_.inputs) {
    const Value& value = graph_.value(id);
    const LayerId layer = users_[id.index()].empty() ? value.layer : graph_.op(users_[id.index()][0]).layer;
    std::vector<ShardingSpec> specs = layouts(value.shape, mesh(layer), mesh(layer).active());
    if (question_.batch_on_data) {
      ShardingSpec spec = ShardingSpec::replicated(value.shape.size());
      spec.dims[0] = {Axis::kData};
      specs = {normalized(spec, mesh(layer))};
    }
    std::vector<double> costs;
    for (const ShardingSpec& spec : specs)
      costs.push_back(prices_.storage ? question_.step_weight * prices_.storage(mesh_index(layer), value, spec) : 0);
    const int node = add_node(std::move(costs));
    out_.specs_[to_index(node)] = std::move(specs);
    out_.node_of_value_[id.index()] = node;
  }
  for (const Parameter& p : graph_.parameters()) ALTIPLANO_RETURN_IF_ERROR(add_parameter(p));
  return Status::ok();
}

Status ShardingProblemBuilder::add_parameter(const Parameter& parameter) {
  const Value& value = graph_.value(parameter.value);
  const MeshShape& m = mesh(value.layer);
  const auto key = std::tuple('p', class_of(value.layer), place_of_parameter_.at(value.id), 0);
  out_.is_parameter_[value.id.index()] = true;
  if (const int node = shared_node(key); node >= 0) {
    add_share(ShardingProblem::ShareKind::kStep, value.layer, node, -1, costs_of_one_.at(node));
    out_.node_of_value_[value.id.index()] = node;
    return Status::ok();
  }
  std::vector<ShardingSpec> specs;
  if (auto fixed = question_.fixed.find(value.id); fixed != question_.fixed.end()) {
    ALTIPLANO_RETURN_IF_ERROR(check_spec(fixed->second, value.shape));
    specs = {normalized(fixed->second, m)};
  } else {
    const AxisSet axes = question_.storage_on_data ? m.active() : m.active() - AxisSet{Axis::kData};
    specs = layouts(value.shape, m, axes);
  }
  specs = stored_at_zero(std::move(specs), value.shape, m, question_.zero);
  std::vector<double> costs;
  for (const ShardingSpec& spec : specs) costs.push_back(question_.step_weight * storage_cost(value, spec));
  const int node = share_node(key, costs);
  add_share(ShardingProblem::ShareKind::kStep, value.layer, node, -1, costs_of_one_.at(node));
  out_.specs_[to_index(node)] = std::move(specs);
  out_.node_of_value_[value.id.index()] = node;
  return Status::ok();
}

void ShardingProblemBuilder::add_share(ShardingProblem::ShareKind kind, LayerId layer, int a, int b,
                                       const std::vector<double>& table, int purpose) {
  out_.shares_.push_back(share_of(kind, layer, a, b, purpose, [&] { return table; }));
}

ShardingSpec ShardingProblemBuilder::optimizer_spec(const Value& parameter, const ShardingSpec& storage) const {
  return optimizer_storage(storage, parameter.shape, mesh(parameter.layer), question_.zero);
}

double ShardingProblemBuilder::storage_cost(const Value& value, const ShardingSpec& spec) {
  double cost = prices_.storage ? prices_.storage(mesh_index(value.layer), value, spec) : 0;
  auto training = training_of_.find(value.id);
  if (training == training_of_.end()) return cost;
  const ShardingSpec share = optimizer_spec(value, spec);
  const Shape local = padded_extents(share, value.shape, mesh(value.layer));
  for (OpId id : training->second->update_ops) {
    const Op& op = graph_.op(id);
    cost +=
        prices_.compute(op, update_types(op.inputs, value.shape, local), update_types(op.outputs, value.shape, local));
  }
  return cost + reshard_cost(mesh_index(value.layer), share, spec, value.shape, value.dtype, true);
}

std::vector<ValueType> ShardingProblemBuilder::update_types(const std::vector<ValueId>& ids, const Shape& whole,
                                                            const Shape& local) const {
  std::vector<ValueType> types;
  for (ValueId id : ids) {
    const Value& value = graph_.value(id);
    types.push_back({value.shape == whole ? local : value.shape, value.dtype});
  }
  return types;
}

// ---- ops ----

Status ShardingProblemBuilder::add_op(const Op& op) {
  const auto key = std::tuple('o', class_of(op.layer), place_of_op_[op.id.index()], 0);
  if (const int node = shared_node(key); node >= 0) {
    add_share(ShardingProblem::ShareKind::kMicrobatch, op.layer, node, -1, costs_of_one_.at(node));
    out_.node_of_op_[op.id.index()] = node;
    return Status::ok();
  }
  std::vector<Strategy> strategies = strategies_of(op);
  if (strategies.empty())
    return invalid_argument("no strategy for {} {} with rule {} on mesh {}", op.kind, op.name,
                            rules_[op.id.index()].to_string(), mesh(op.layer).to_string());
  std::vector<double> costs;
  for (const Strategy& strategy : strategies)
    costs.push_back(question_.microbatch_weight * prices_.compute(op, local_types(op.inputs, strategy.inputs, op.layer),
                                                                  local_types(op.outputs, strategy.outputs, op.layer)));
  const int node = share_node(key, costs);
  add_share(ShardingProblem::ShareKind::kMicrobatch, op.layer, node, -1, costs);
  out_.strategies_[to_index(node)] = std::move(strategies);
  out_.node_of_op_[op.id.index()] = node;
  return Status::ok();
}

std::vector<ValueType> ShardingProblemBuilder::local_types(const std::vector<ValueId>& ids,
                                                           const std::vector<ShardingSpec>& specs,
                                                           LayerId layer) const {
  std::vector<ValueType> types;
  for (size_t i = 0; i < ids.size(); ++i)
    types.push_back({padded_extents(normalized(specs[i], mesh(layer)), block_shape(ids[i]), mesh(layer)),
                     graph_.value(ids[i]).dtype});
  return types;
}

std::vector<Strategy> ShardingProblemBuilder::strategies_of(const Op& op) const {
  const ShardingRule& rule = rules_[op.id.index()];
  const MeshShape& m = mesh(op.layer);
  const int batch = factor_of_dim(op, rule, batch_dim_);
  const bool splits_batch = question_.batch_on_data && m.degree(Axis::kData) > 1;
  std::vector<Strategy> out;
  for (Strategy& strategy : enumerate_strategies(rule, m)) {
    auto data = strategy.factor_of.find(Axis::kData);
    const int factor = data == strategy.factor_of.end() ? -1 : data->second;
    if (splits_batch && factor != batch) continue;
    bool is_alike = std::any_of(strategy.factor_of.begin(), strategy.factor_of.end(), [&](const auto& split) {
      return rule.factors[to_index(split.second)].size < m.degree(split.first);
    });
    for (const Strategy& other : out)
      is_alike = is_alike || (other.inputs == strategy.inputs && other.outputs == strategy.outputs);
    if (!is_alike) out.push_back(std::move(strategy));
  }
  return out;
}

// ---- values that several read ----

bool ShardingProblemBuilder::may_be_partial(ValueId id, size_t output) const {
  const int node = out_.node_of_op_[graph_.value(id).producer.index()];
  const auto& strategies = out_.strategies_[to_index(node)];
  return std::any_of(strategies.begin(), strategies.end(),
                     [&](const Strategy& s) { return !s.outputs[output].partial.is_empty(); });
}

bool ShardingProblemBuilder::needs_node(const Value& value, size_t output) const {
  const auto& users = users_[value.id.index()];
  if (users.empty() || contributes_to_.count(value.id) || !may_be_partial(value.id, output)) return false;
  return users.size() > 1 || graph_.op(users[0]).layer != graph_.op(value.producer).layer;
}

size_t ShardingProblemBuilder::output_index(const Op& op, ValueId id) {
  return static_cast<size_t>(std::find(op.outputs.begin(), op.outputs.end(), id) - op.outputs.begin());
}

void ShardingProblemBuilder::add_stored(const Value& value) {
  if (!value.producer.is_valid() || graph_.op(value.producer).phase == Phase::kUpdate) return;
  const Op& producer = graph_.op(value.producer);
  const size_t output = output_index(producer, value.id);
  if (!needs_node(value, output)) return;
  const MeshShape& m = mesh(producer.layer);
  // The last block of a chain is read by other ops than the blocks before it; what is shared must be alike.
  const auto key =
      std::tuple('v', class_of(producer.layer), place_of_op_[producer.id.index()], static_cast<int>(output));
  if (const int node = shared_node(key); node >= 0) {
    out_.node_of_value_[value.id.index()] = node;
    return;
  }
  std::set<ShardingSpec> specs;
  for (const Strategy& s : out_.strategies_[to_index(out_.node_of_op_[producer.id.index()])])
    specs.insert(normalized(s.outputs[output].resolved(), m));
  for (OpId user : users_[value.id.index()])
    for (size_t i = 0; i < graph_.op(user).inputs.size(); ++i)
      if (graph_.op(user).inputs[i] == value.id)
        for (const Strategy& s : out_.strategies_[to_index(out_.node_of_op_[user.index()])])
          if (s.inputs[i].partial.is_empty()) specs.insert(normalized(s.inputs[i], m));
  const int node = share_node(key, std::vector<double>(specs.size(), 0));
  out_.specs_[to_index(node)].assign(specs.begin(), specs.end());
  out_.node_of_value_[value.id.index()] = node;
}

}  // namespace altiplano
