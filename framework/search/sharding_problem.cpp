#include "framework/search/sharding_problem.hpp"

#include <algorithm>
#include <set>

#include "framework/plan/assignment.hpp"
#include "framework/search/live_rows.hpp"
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

}  // namespace

class ShardingProblemBuilder {
 public:
  ShardingProblemBuilder(const ShardingQuestion& question, const ShardingPrices& prices)
      : question_(question), prices_(prices), training_(*question.training), graph_(training_.graph) {}

  Result<ShardingProblem> run() {
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

 private:
  const MeshShape& mesh(LayerId layer) const { return question_.meshes[mesh_index(layer)]; }
  size_t mesh_index(LayerId layer) const { return question_.mesh_of_layer[layer.index()]; }
  int class_of(LayerId layer) const { return question_.layer_class[layer.index()]; }

  Shape block_shape(ValueId id) const {
    Shape shape = graph_.value(id).shape;
    const int batch = batch_dim_[id.index()];
    if (batch >= 0 && question_.block_batch > 0) shape[to_index(batch)] = question_.block_batch;
    return shape;
  }

  /// Where each op stands in its layer, where each parameter does, and who reads what.
  void find_places() {
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

  int add_node(std::vector<double> costs) {
    out_.problem_.nodes.push_back(std::move(costs));
    out_.strategies_.emplace_back();
    out_.specs_.emplace_back();
    return static_cast<int>(out_.problem_.nodes.size()) - 1;
  }

  /// The node for a place in a class of layers, if an equal layer has one already: what it costs there is added once
  /// more.
  int shared_node(const std::tuple<char, int, int, int>& key) {
    auto known = shared_.find(key);
    if (known == shared_.end()) return -1;
    const std::vector<double>& costs = costs_of_one_.at(known->second);
    for (size_t k = 0; k < costs.size(); ++k) out_.problem_.nodes[to_index(known->second)][k] += costs[k];
    return known->second;
  }
  int share_node(const std::tuple<char, int, int, int>& key, const std::vector<double>& costs) {
    const int node = add_node(costs);
    costs_of_one_[node] = costs;
    return shared_[key] = node;
  }

  // ---- inputs of the model, parameters ----

  Status add_inputs_and_parameters() {
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

  Status add_parameter(const Parameter& parameter) {
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
    std::vector<double> costs;
    for (const ShardingSpec& spec : specs) costs.push_back(question_.step_weight * storage_cost(value, spec));
    const int node = share_node(key, costs);
    add_share(ShardingProblem::ShareKind::kStep, value.layer, node, -1, costs_of_one_.at(node));
    out_.specs_[to_index(node)] = std::move(specs);
    out_.node_of_value_[value.id.index()] = node;
    return Status::ok();
  }

  /// Tables are kept once per nodes and purpose: `table` is only read when there is none of that key.
  void add_share(ShardingProblem::ShareKind kind, LayerId layer, int a, int b, const std::vector<double>& table,
                 int purpose = 0) {
    out_.shares_.push_back(share_of(kind, layer, a, b, purpose, [&] { return table; }));
  }
  template <typename Table>
  ShardingProblem::Share share_of(ShardingProblem::ShareKind kind, LayerId layer, int a, int b, int purpose,
                                  Table table) {
    auto [known, fresh] = tables_.emplace(std::tuple(kind, a, b, purpose), out_.tables_.size());
    if (fresh) out_.tables_.push_back(table());
    return {kind, layer, a, b, known->second};
  }

  ShardingSpec optimizer_spec(const Value& parameter, const ShardingSpec& storage) const {
    return question_.shards_optimizer ? zero_spec(storage, parameter.shape, mesh(parameter.layer)) : storage;
  }

  /// Its update on the optimizer's share, and the way of the result back into storage.
  double storage_cost(const Value& value, const ShardingSpec& spec) {
    double cost = prices_.storage ? prices_.storage(mesh_index(value.layer), value, spec) : 0;
    auto training = training_of_.find(value.id);
    if (training == training_of_.end()) return cost;
    const ShardingSpec share = optimizer_spec(value, spec);
    const Shape local = padded_extents(share, value.shape, mesh(value.layer));
    for (OpId id : training->second->update_ops) {
      const Op& op = graph_.op(id);
      cost += prices_.compute(op, update_types(op.inputs, value.shape, local),
                              update_types(op.outputs, value.shape, local));
    }
    return cost + reshard_cost(mesh_index(value.layer), share, spec, value.shape, value.dtype, true);
  }

  std::vector<ValueType> update_types(const std::vector<ValueId>& ids, const Shape& whole, const Shape& local) const {
    std::vector<ValueType> types;
    for (ValueId id : ids) {
      const Value& value = graph_.value(id);
      types.push_back({value.shape == whole ? local : value.shape, value.dtype});
    }
    return types;
  }

  // ---- ops ----

  Status add_op(const Op& op) {
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
      costs.push_back(question_.microbatch_weight *
                      prices_.compute(op, local_types(op.inputs, strategy.inputs, op.layer),
                                      local_types(op.outputs, strategy.outputs, op.layer)));
    const int node = share_node(key, costs);
    add_share(ShardingProblem::ShareKind::kMicrobatch, op.layer, node, -1, costs);
    out_.strategies_[to_index(node)] = std::move(strategies);
    out_.node_of_op_[op.id.index()] = node;
    return Status::ok();
  }

  std::vector<ValueType> local_types(const std::vector<ValueId>& ids, const std::vector<ShardingSpec>& specs,
                                     LayerId layer) const {
    std::vector<ValueType> types;
    for (size_t i = 0; i < ids.size(); ++i)
      types.push_back({padded_extents(normalized(specs[i], mesh(layer)), block_shape(ids[i]), mesh(layer)),
                       graph_.value(ids[i]).dtype});
    return types;
  }

  /// All that the rule allows and that give every device something to do, the first of those that lie alike.
  std::vector<Strategy> strategies_of(const Op& op) const {
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

  bool may_be_partial(ValueId id, size_t output) const {
    const int node = out_.node_of_op_[graph_.value(id).producer.index()];
    const auto& strategies = out_.strategies_[to_index(node)];
    return std::any_of(strategies.begin(), strategies.end(),
                       [&](const Strategy& s) { return !s.outputs[output].partial.is_empty(); });
  }

  bool needs_node(const Value& value, size_t output) const {
    const auto& users = users_[value.id.index()];
    if (users.empty() || contributes_to_.count(value.id) || !may_be_partial(value.id, output)) return false;
    return users.size() > 1 || graph_.op(users[0]).layer != graph_.op(value.producer).layer;
  }

  static size_t output_index(const Op& op, ValueId id) {
    return static_cast<size_t>(std::find(op.outputs.begin(), op.outputs.end(), id) - op.outputs.begin());
  }

  void add_stored(const Value& value) {
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

  // ---- edges ----

  double reshard_cost(size_t mesh_number, const ShardingSpec& from, const ShardingSpec& to, const Shape& shape,
                      DType dtype, bool in_bucket = false) {
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

  /// What an edge's prices are for: those of one kind between two nodes are alike, whichever of the equal layers they
  /// join.
  enum class EdgeKind : uint8_t { kUse, kStore, kGradient, kFurtherGradient };

  /// Adds the price of every pair of choices to the edge of two nodes.
  template <typename Price>
  void add_edge(int a, int b, LayerId layer, EdgeKind kind, size_t number, Price price) {
    const size_t size_a = out_.problem_.nodes[to_index(a)].size(), size_b = out_.problem_.nodes[to_index(b)].size();
    std::vector<double>& prices = priced_[{a, b, kind, number}];
    if (prices.empty())
      for (size_t i = 0; i < size_a; ++i)
        for (size_t j = 0; j < size_b; ++j) prices.push_back(a != b || i == j ? price(i, j) : 0);
    add_share(kind == EdgeKind::kGradient ? ShardingProblem::ShareKind::kStep : ShardingProblem::ShareKind::kMicrobatch,
              layer, a, b, prices, static_cast<int>(4 * number) + static_cast<int>(kind));
    if (a == b) {  // a layer before its equal: a choice meets itself
      for (size_t k = 0; k < size_a; ++k) out_.problem_.nodes[to_index(a)][k] += prices[k * size_a + k];
      return;
    }
    ChoiceEdge& edge = edges_[std::pair(std::min(a, b), std::max(a, b))];
    edge.a = std::min(a, b);
    edge.b = std::max(a, b);
    edge.costs.resize(size_a * size_b, 0);
    for (size_t i = 0; i < size_a; ++i)
      for (size_t j = 0; j < size_b; ++j) edge.costs[a > b ? j * size_a + i : i * size_b + j] += prices[i * size_b + j];
  }

  ShardingSpec source_spec(ValueId id, size_t choice) const {
    const Value& value = graph_.value(id);
    if (const int node = out_.node_of_value_[id.index()]; node >= 0) return out_.specs_[to_index(node)][choice];
    const Op& producer = graph_.op(value.producer);
    const Strategy& strategy = out_.strategies_[to_index(out_.node_of_op_[producer.id.index()])][choice];
    return normalized(strategy.outputs[output_index(producer, id)], mesh(producer.layer));
  }
  int source_node(ValueId id) const {
    const int node = out_.node_of_value_[id.index()];
    return node >= 0 ? node : out_.node_of_op_[graph_.value(id).producer.index()];
  }

  void add_uses(const Op& op) {
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

  /// Contributions add up in the first one's spec; once per step the sum goes where the optimizer works.
  void add_gradients() {
    for (const ParameterTraining& p : training_.parameters) {
      if (p.contributions.empty()) continue;
      const Value& parameter = graph_.value(p.parameter);
      const Value& first = graph_.value(p.contributions[0]);
      const DType dtype = p.gradient.is_valid() ? graph_.value(p.gradient).dtype : first.dtype;
      const int storage = out_.node_of_value_[p.parameter.index()];
      const LayerId layer = graph_.op(first.producer).layer;
      add_edge(source_node(first.id), storage, layer, EdgeKind::kGradient, 0, [&](size_t from, size_t to) {
        const ShardingSpec spec = optimizer_spec(parameter, out_.specs_[to_index(storage)][to]);
        return question_.step_weight * reshard_cost(mesh_index(layer), source_spec(first.id, from),
                                                    normalized(spec, mesh(layer)), parameter.shape, dtype, true);
      });
      for (size_t c = 1; c < p.contributions.size(); ++c) add_further_contribution(p.contributions[c], first);
    }
  }

  void add_further_contribution(ValueId id, const Value& first) {
    const LayerId layer = graph_.op(graph_.value(id).producer).layer;
    const MeshShape& m = mesh(layer);
    add_edge(source_node(id), source_node(first.id), layer, EdgeKind::kFurtherGradient, 0, [&](size_t from, size_t to) {
      return question_.microbatch_weight * reshard_cost(mesh_index(layer), source_spec(id, from),
                                                        normalized(source_spec(first.id, to), m), first.shape,
                                                        graph_.value(id).dtype);
    });
  }

  // ---- memory ----

  double local_bytes(const Value& value, const ShardingSpec& spec, LayerId layer, DType dtype) const {
    const Shape local = padded_extents(normalized(spec, mesh(layer)), block_shape(value.id), mesh(layer));
    return static_cast<double>(num_elements(local) * size_of(dtype));
  }

  /// Bytes of every layer, for shares: as the rows count them, once per layer.
  void add_bytes() {
    using Kind = ShardingProblem::ShareKind;
    for (const Parameter& p : graph_.parameters()) {
      const Value& value = graph_.value(p.value);
      const int node = out_.node_of_value_[value.id.index()];
      out_.shares_.push_back(
          share_of(Kind::kPersistent, value.layer, node, -1, 1, [&] { return storage_bytes(value); }));
    }
    for (const ParameterTraining& p : training_.parameters) {
      if (p.contributions.empty()) continue;
      const Value& first = graph_.value(p.contributions[0]);
      const DType dtype = p.gradient.is_valid() ? graph_.value(p.gradient).dtype : first.dtype;
      out_.shares_.push_back(share_of(Kind::kPersistent, graph_.op(first.producer).layer, source_node(first.id), -1, 2,
                                      [&] { return value_bytes(first, dtype); }));
    }
    const std::vector<bool> all(graph_.layers().size(), true);
    for (const LiveSet& set : live_sets(training_, all, question_.layer_class)) {
      out_.work_.emplace_back();
      for (const LiveValue& live : set) {
        const Value& value = graph_.value(live.value);
        if (!value.producer.is_valid()) continue;
        const auto output = static_cast<int>(output_index(graph_.op(value.producer), value.id));
        const auto share = share_of(Kind::kStash, graph_.op(value.producer).layer, source_node(value.id), -1,
                                    3 + output, [&] { return value_bytes(value, value.dtype); });
        if (!live.is_stashed) out_.work_.back().push_back(share);
        if (live.is_stashed && out_.work_.size() == 1) out_.shares_.push_back(share);  // the same in every set
      }
    }
  }

  std::vector<double> storage_bytes(const Value& value) const {
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

  std::vector<double> value_bytes(const Value& value, DType dtype) const {
    const size_t size = out_.problem_.nodes[to_index(source_node(value.id))].size();
    std::vector<double> bytes;
    for (size_t k = 0; k < size; ++k)
      bytes.push_back(local_bytes(value, source_spec(value.id, k), graph_.op(value.producer).layer, dtype));
    return bytes;
  }

  void add_memory() {
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

  std::vector<double>& use_of(std::map<int, std::vector<double>>& uses, int node) const {
    std::vector<double>& use = uses[node];
    use.resize(out_.problem_.nodes[to_index(node)].size(), 0);
    return use;
  }

  /// Parameters that the stage uses, and the accumulators and states of those that are at home there.
  void add_persistent(const ShardingMemory& memory, std::map<int, std::vector<double>>& uses) {
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

  void add_accumulator(const ParameterTraining& p, const ShardingMemory& memory,
                       std::map<int, std::vector<double>>& uses) {
    for (ValueId id : p.contributions) {
      const LayerId layer = graph_.op(graph_.value(id).producer).layer;
      if (!memory.layers[layer.index()]) continue;
      const DType dtype = p.gradient.is_valid() ? graph_.value(p.gradient).dtype : graph_.value(id).dtype;
      std::vector<double>& use = use_of(uses, source_node(id));
      for (size_t k = 0; k < use.size(); ++k) use[k] += local_bytes(graph_.value(id), source_spec(id, k), layer, dtype);
      return;  // further contributions are added to it
    }
  }

  void add_live(const LiveValue& live, const ShardingMemory& memory, std::map<int, std::vector<double>>& uses) const {
    const Value& value = graph_.value(live.value);
    const LayerId layer =
        value.producer.is_valid() ? graph_.op(value.producer).layer : graph_.op(users_[value.id.index()][0]).layer;
    const double copies = live.is_stashed ? memory.microbatches_in_flight : 1;
    std::vector<double>& use = use_of(uses, source_node(value.id));
    for (size_t k = 0; k < use.size(); ++k)
      use[k] += copies * local_bytes(value, source_spec(value.id, k), layer, value.dtype);
  }

  const ShardingQuestion& question_;
  const ShardingPrices& prices_;
  const TrainingGraph& training_;
  const Graph& graph_;
  GraphFacts own_facts_;
  const GraphFacts& facts_ = question_.facts != nullptr ? *question_.facts : own_facts_;
  const std::vector<ShardingRule>& rules_ = facts_.rules;
  const std::vector<int>& batch_dim_ = facts_.batch_dim;
  std::vector<int> place_of_op_;
  std::map<ValueId, int> place_of_parameter_;
  std::vector<std::vector<OpId>> users_;
  std::map<ValueId, const ParameterTraining*> training_of_;
  std::map<ValueId, ValueId> contributes_to_;
  std::map<std::tuple<char, int, int, int>, int> shared_;
  std::map<int, std::vector<double>> costs_of_one_;  ///< by shared node: what one layer adds
  std::map<std::pair<int, int>, ChoiceEdge> edges_;
  std::map<std::tuple<int, int, EdgeKind, size_t>, std::vector<double>> priced_;
  std::map<std::tuple<ShardingProblem::ShareKind, int, int, int>, size_t> tables_;
  std::map<std::tuple<size_t, ShardingSpec, ShardingSpec, Shape, DType, bool>, double> paths_;
  ShardingProblem out_;
};

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

Result<GraphFacts> GraphFacts::of(const TrainingGraph& training) {
  GraphFacts facts;
  ALTIPLANO_ASSIGN(facts.rules, rules_of(training.graph));
  facts.batch_dim = trace_dim(training.graph, facts.rules, training.inputs, 0);
  return facts;
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

std::vector<int> classes_of_layers(const TrainingGraph& training, const std::vector<size_t>& mesh_of_layer) {
  const std::vector<uint64_t> signatures = layer_signatures(training.graph);
  std::map<std::pair<uint64_t, size_t>, int> known;
  std::vector<int> classes;
  for (size_t l = 0; l < signatures.size(); ++l)
    classes.push_back(
        known.emplace(std::pair(signatures[l], mesh_of_layer[l]), static_cast<int>(known.size())).first->second);
  return classes;
}

}  // namespace altiplano
