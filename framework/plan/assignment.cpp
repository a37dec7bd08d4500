#include "framework/plan/assignment.hpp"

#include <algorithm>
#include <set>

#include "framework/base/text.hpp"
#include "framework/plan/layer_names.hpp"
#include "framework/sharding/reshard.hpp"

namespace altiplano {

std::vector<ShardingSpec> parameter_specs(const Graph& graph, const Plan& plan) {
  std::vector<ShardingSpec> specs(graph.values().size());
  for (const Parameter& parameter : graph.parameters()) {
    const Value& value = graph.value(parameter.value);
    const ShardingSpec* planned = plan.find_spec(value.name);
    specs[value.id.index()] = planned ? *planned : ShardingSpec::replicated(value.shape.size());
  }
  return specs;
}

ShardingSpec zero_spec(const ShardingSpec& storage, const Shape& shape, const MeshShape& mesh) {
  int degree = mesh.degree(Axis::kData);
  if (degree == 1 || storage.split_axes().contains(Axis::kData)) return storage;
  Shape local = padded_extents(storage, shape, mesh);
  // The first even dim: its pieces lie one after the other, so that they are exchanged where they are.
  int best = -1;
  for (size_t d = 0; d < local.size(); ++d) {
    if (local[d] < 2) continue;
    if (local[d] % degree == 0) {
      best = static_cast<int>(d);
      break;
    }
    if (best < 0 || local[d] > local[static_cast<size_t>(best)]) best = static_cast<int>(d);
  }
  ShardingSpec spec = storage;
  if (best >= 0) spec.dims[static_cast<size_t>(best)].push_back(Axis::kData);
  return spec;
}

ShardingSpec parameter_storage(const ShardingSpec& planned, const Shape& shape, const MeshShape& mesh, int zero) {
  const ShardingSpec spec = normalized(planned, mesh);
  return zero >= 3 ? zero_spec(spec, shape, mesh) : spec;
}

ShardingSpec optimizer_storage(const ShardingSpec& planned, const Shape& shape, const MeshShape& mesh, int zero) {
  const ShardingSpec spec = normalized(planned, mesh);
  return zero >= 1 ? zero_spec(spec, shape, mesh) : spec;
}

namespace {

class Assigner {
 public:
  Assigner(const TrainingGraph& training, const Plan& plan, SharedFacts facts, const WantedShardings* wanted = nullptr)
      : training_(training), graph_(training.graph), plan_(plan), wanted_(wanted) {
    out_.facts = std::move(facts);
  }
  /// With wanted shardings: ops that the defaults would have run otherwise.
  const std::vector<OpId>& surprises() const { return surprises_; }

  Result<ShardingAssignment> run() {
    ALTIPLANO_ASSIGN(out_.facts, facts_of(training_, std::move(out_.facts)));
    size_t num_values = graph_.values().size();
    out_.strategies.resize(graph_.ops().size());
    out_.produced.resize(num_values);
    out_.stored.resize(num_values);
    out_.optimizer.resize(num_values);
    out_.parameter = parameter_specs(graph_, plan_);
    place();
    seed_inputs_and_parameters();
    for (const Op& op : graph_.ops()) {
      if (op.phase == Phase::kUpdate) continue;
      ALTIPLANO_RETURN_IF_ERROR(assign(op));
    }
    for (const ParameterTraining& p : training_.parameters) ALTIPLANO_RETURN_IF_ERROR(assign_update(p));
    return std::move(out_);
  }

 private:
  const MeshShape& mesh(StageId stage) const { return plan_.stages[stage.index()].mesh; }

  /// Stages of ops and values.
  void place() {
    auto stage_of_layer = stage_of_layers(plan_, graph_);
    out_.home.assign(graph_.values().size(), StageId());
    std::vector<std::set<StageId>> users(graph_.values().size());
    for (const Op& op : graph_.ops()) {
      StageId stage = stage_of_layer[op.layer.index()];
      out_.stage_of_op.push_back(stage);
      if (op.phase == Phase::kUpdate) continue;
      for (ValueId id : op.outputs) out_.home[id.index()] = stage;
      for (ValueId id : op.inputs) users[id.index()].insert(stage);
    }
    for (auto& set : users) out_.users.emplace_back(set.begin(), set.end());
    for (const Value& value : graph_.values())
      if (!value.producer.is_valid() && !out_.users[value.id.index()].empty())
        out_.home[value.id.index()] = out_.users[value.id.index()][0];
    for (const Parameter& p : graph_.parameters())
      if (!out_.home[p.value.index()].is_valid())
        out_.home[p.value.index()] = stage_of_layer[graph_.value(p.value).layer.index()];
    for (const ParameterTraining& p : training_.parameters) place_update(p);
  }

  /// Everything of a parameter's update stands where the parameter is at home.
  void place_update(const ParameterTraining& p) {
    StageId home = out_.home[p.parameter.index()];
    out_.home[p.gradient.index()] = home;
    for (ValueId state : p.states) out_.home[state.index()] = home;
    for (OpId id : update_ops_of(p)) {
      const Op& op = graph_.ops()[id.index()];
      out_.stage_of_op[op.id.index()] = home;
      for (ValueId output : op.outputs) out_.home[output.index()] = home;
    }
  }

  /// The norm of its gradient and its update, in graph order.
  std::vector<OpId> update_ops_of(const ParameterTraining& p) const {
    std::vector<OpId> ops = p.update_ops;
    if (p.norm_squared.is_valid() && graph_.value(p.norm_squared).producer.is_valid())
      ops.push_back(graph_.value(p.norm_squared).producer);
    std::sort(ops.begin(), ops.end());
    return ops;
  }

  void seed_inputs_and_parameters() {
    for (ValueId id : training_.inputs) {
      ShardingSpec spec = ShardingSpec::replicated(graph_.value(id).shape.size());
      spec.dims[0] = {Axis::kData};
      out_.produced[id.index()] = out_.stored[id.index()] = normalized(spec, mesh(out_.home[id.index()]));
    }
    for (const Parameter& p : graph_.parameters()) {
      const StageId home = out_.home[p.value.index()];
      out_.produced[p.value.index()] = out_.stored[p.value.index()] = storage(p.value, home);
      out_.optimizer[p.value.index()] = optimizer_storage(out_.parameter[p.value.index()], graph_.value(p.value).shape,
                                                          mesh(home), plan_.stages[home.index()].zero);
    }
    contribution_of_.assign(graph_.values().size(), ValueId());
    for (const ParameterTraining& p : training_.parameters)
      for (ValueId id : p.contributions) contribution_of_[id.index()] = p.parameter;
  }

  ShardingSpec storage(ValueId parameter, StageId stage) const {
    return parameter_storage(out_.parameter[parameter.index()], graph_.value(parameter).shape, mesh(stage),
                             plan_.stages[stage.index()].zero);
  }

  /// How an input lies when the op's stage sees it.
  ShardingSpec seen(ValueId id, StageId stage) const {
    if (graph_.value(id).role == Role::kParameter) return storage(id, stage);
    if (out_.home[id.index()] == stage) return out_.stored[id.index()];
    return normalized(out_.stored[id.index()].resolved(), mesh(stage));
  }

  Status assign(const Op& op) {
    StageId stage = out_.stage_of_op[op.id.index()];
    const MeshShape& m = mesh(stage);
    const ShardingRule& rule = out_.facts->rules[op.id.index()];
    std::map<Axis, int> fixed;
    int batch_factor = factor_of_dim(op, rule, out_.facts->batch_dim);
    if (m.degree(Axis::kData) > 1 && batch_factor >= 0) fixed[Axis::kData] = batch_factor;
    resolve_foreign_partials(op, stage);
    if (const std::string* text = planned_strategy(op)) {
      ALTIPLANO_ASSIGN(const Strategy planned, parse_strategy(*text, rule, m));
      commit(op, planned, m);
      return Status::ok();
    }
    std::optional<Strategy> best = cheapest(op, stage, candidates(op, rule, m, fixed, true));
    // The rule does not let the op run as its parameter is stored (a whole factor): it is gathered for its use.
    if (!best) best = cheapest(op, stage, candidates(op, rule, m, fixed, false));
    if (wanted_ != nullptr) {
      const Strategy& wanted = wanted_->strategies[op.id.index()];
      if (!best || best->inputs != wanted.inputs || best->outputs != wanted.outputs) surprises_.push_back(op.id);
      best = wanted;
    }
    if (!best)
      return invalid_argument("no legal strategy for {} {} with rule {} on mesh {}", op.kind, op.name, rule.to_string(),
                              m.to_string());
    commit(op, *best, m);
    return Status::ok();
  }

  const std::string* planned_strategy(const Op& op) const {
    for (const auto& [pattern, text] : plan_.strategies)
      if (glob_match(pattern, op.name)) return &text;
    return nullptr;
  }

  const ShardingSpec* planned_stored(const Value& value) const {
    if (wanted_ != nullptr) {
      auto found = wanted_->stored.find(value.id);
      return found == wanted_->stored.end() ? nullptr : &found->second;
    }
    for (const auto& [pattern, spec] : plan_.stored)
      if (glob_match(pattern, value.name)) return &spec;
    return nullptr;
  }

  std::optional<Strategy> cheapest(const Op& op, StageId stage, const std::vector<Strategy>& candidates) const {
    std::optional<Strategy> best;
    std::pair<double, int> best_cost;
    for (const Strategy& candidate : candidates) {
      auto cost = cost_of(op, candidate, stage);
      if (!cost || (best && *cost >= best_cost)) continue;
      best_cost = *cost;
      best = candidate;
    }
    return best;
  }

  /// A partial result of another stage was resolved there before it was sent.
  void resolve_foreign_partials(const Op& op, StageId stage) {
    for (ValueId id : op.inputs) {
      StageId home = out_.home[id.index()];
      ShardingSpec& stored = out_.stored[id.index()];
      if (home == stage || stored.partial.is_empty()) continue;
      ShardingSpec resolved = stored.resolved();
      int s = out_.facts->sequence_dim[id.index()];
      if (plan_.sequence_parallel && s >= 0 && stored.partial.contains(Axis::kTensor) &&
          stored.partial_kind == PartialKind::kSum)
        resolved.dims[static_cast<size_t>(s)].push_back(Axis::kTensor);
      stored = resolved;
    }
  }

  /// Strategies worth pricing: the data axis as fixed, every other axis along what is already split; `as_stored`: along
  /// the factor a parameter is stored split by, where there is one.
  std::vector<Strategy> candidates(const Op& op, const ShardingRule& rule, const MeshShape& m,
                                   const std::map<Axis, int>& fixed, bool as_stored) const {
    std::vector<std::pair<std::map<Axis, int>, AxisSet>> choices = {{fixed, {}}};
    for (const auto& [axis, degree] : m.axes) {
      if (degree == 1 || fixed.count(axis) || axis == Axis::kData) continue;
      auto before = std::move(choices);
      choices.clear();
      std::set<int> factors = factors_along(op, rule, axis);
      int forced = as_stored ? forced_factor(op, rule, axis) : -1;
      for (const auto& [map, partial] : before) {
        if (forced < 0) choices.emplace_back(map, partial);
        for (int f : factors) {
          if (forced >= 0 && f != forced) continue;
          auto with = map;
          with[axis] = f;
          choices.emplace_back(std::move(with), partial);
        }
        if (forced < 0 && rule.linear) {
          AxisSet with = partial;
          with.insert(axis);
          choices.emplace_back(map, with);
        }
      }
    }
    std::vector<Strategy> out;
    for (const auto& [map, partial] : choices)
      if (auto strategy = make_strategy(rule, map, partial, m)) out.push_back(std::move(*strategy));
    return out;
  }

  /// Factors by which some input is split along `axis`, plus the sequence where a partial sum may be scattered over it.
  std::set<int> factors_along(const Op& op, const ShardingRule& rule, Axis axis) const {
    StageId stage = out_.stage_of_op[op.id.index()];
    std::set<int> factors;
    bool has_partial = false;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      ShardingSpec spec = seen(op.inputs[i], stage);
      has_partial = has_partial || spec.partial.contains(axis);
      for (size_t d = 0; d < spec.dims.size(); ++d)
        if (std::find(spec.dims[d].begin(), spec.dims[d].end(), axis) != spec.dims[d].end() &&
            !rule.inputs[i][d].empty())
          factors.insert(rule.inputs[i][d][0]);
    }
    int forced = forced_factor(op, rule, axis);
    if (forced >= 0) factors.insert(forced);
    int sequence = factor_of_dim(op, rule, out_.facts->sequence_dim);
    if (axis == Axis::kTensor && sequence >= 0) {
      if (plan_.sequence_parallel && has_partial) factors.insert(sequence);
      if (!plan_.sequence_parallel && sequence != forced) factors.erase(sequence);
    }
    return factors;
  }

  /// The factor of a dim that a parameter (or the gradient of one) is stored split along; -1: none.
  int forced_factor(const Op& op, const ShardingRule& rule, Axis axis) const {
    StageId stage = out_.stage_of_op[op.id.index()];
    auto along = [&](ValueId parameter, const std::vector<std::vector<int>>& operand) {
      ShardingSpec spec = storage(parameter, stage);
      for (size_t d = 0; d < spec.dims.size(); ++d)
        if (std::find(spec.dims[d].begin(), spec.dims[d].end(), axis) != spec.dims[d].end() && !operand[d].empty())
          return operand[d][0];
      return -1;
    };
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (graph_.value(op.inputs[i]).role != Role::kParameter) continue;
      if (int f = along(op.inputs[i], rule.inputs[i]); f >= 0) return f;
    }
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      ValueId parameter = contribution_of_[op.outputs[i].index()];
      if (!parameter.is_valid()) continue;
      if (int f = along(parameter, rule.outputs[i]); f >= 0) return f;
    }
    return -1;
  }

  /// (bytes on the wire to bring the inputs, axes left idle); nothing when an input cannot be brought.
  std::optional<std::pair<double, int>> cost_of(const Op& op, const Strategy& strategy, StageId stage) const {
    double bytes = 0;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const Value& value = graph_.value(op.inputs[i]);
      auto path = reshard_path(seen(value.id, stage), strategy.inputs[i], value.shape, mesh(stage));
      if (!path.is_ok()) return std::nullopt;
      bytes += reshard_wire_elements(*path) * static_cast<double>(size_of(value.dtype));
    }
    int idle = -static_cast<int>(strategy.factor_of.size());
    return std::pair(bytes, idle);
  }

  void commit(const Op& op, const Strategy& strategy, const MeshShape& m) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      ValueId id = op.inputs[i];
      // The first user decides how a partial result is resolved.
      if (out_.home[id.index()] == out_.stage_of_op[op.id.index()] && !out_.stored[id.index()].partial.is_empty() &&
          graph_.value(id).role != Role::kParameter)
        out_.stored[id.index()] = normalized(strategy.inputs[i], m);
    }
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const Value& value = graph_.value(op.outputs[i]);
      out_.produced[value.id.index()] = out_.stored[value.id.index()] = normalized(strategy.outputs[i], m);
      if (const ShardingSpec* planned = planned_stored(value)) out_.stored[value.id.index()] = normalized(*planned, m);
    }
    out_.strategies[op.id.index()] = strategy;
  }

  /// Gradient, states, norm and update: all in the optimizer's spec.
  Status assign_update(const ParameterTraining& p) {
    ShardingSpec spec = out_.optimizer[p.parameter.index()];
    auto set = [&](ValueId id) { out_.produced[id.index()] = out_.stored[id.index()] = spec; };
    set(p.gradient);
    for (ValueId state : p.states) set(state);
    for (OpId id : update_ops_of(p)) {
      const Op& op = graph_.ops()[id.index()];
      bool is_norm = !op.outputs.empty() && op.outputs[0] == p.norm_squared;
      const ShardingRule& rule = out_.facts->rules[op.id.index()];
      std::map<Axis, int> factor_of;
      for (size_t d = 0; d < spec.dims.size(); ++d)
        for (Axis axis : spec.dims[d]) factor_of[axis] = rule.inputs[0][d][0];
      const MeshShape& m = mesh(out_.home[p.parameter.index()]);
      auto strategy = make_strategy(rule, factor_of, {}, m);
      if (!strategy) return invalid_argument("update op {} {} cannot run in {}", op.kind, op.name, spec.to_string());
      // Axis order inside a dim is the spec's (storage axes first), not the strategy's.
      for (ShardingSpec& s : strategy->inputs)
        if (s.dims.size() == spec.dims.size()) s = spec;
      for (ShardingSpec& s : strategy->outputs)
        if (!is_norm) s = spec;
      for (size_t i = 0; i < op.outputs.size(); ++i)
        out_.produced[op.outputs[i].index()] = out_.stored[op.outputs[i].index()] = strategy->outputs[i];
      out_.strategies[op.id.index()] = *strategy;
    }
    return Status::ok();
  }

  const TrainingGraph& training_;
  const Graph& graph_;
  const Plan& plan_;
  ShardingAssignment out_;
  const WantedShardings* wanted_;
  std::vector<ValueId> contribution_of_;
  std::vector<OpId> surprises_;
};

}  // namespace

Result<ShardingAssignment> assign_shardings(const TrainingGraph& graph, const Plan& plan, const SharedFacts& facts) {
  return Assigner(graph, plan, facts).run();
}

namespace {

/// "block.7.mlp.up" of layer block.7 -> "block.*.mlp.up"; nothing when the name does not begin with a numbered layer.
std::string pattern_of(const std::string& name, const std::string& layer) {
  auto numbered = numbered_layer(layer);
  if (!numbered || !name.starts_with(layer + ".")) return {};
  return numbered->first + "*" + name.substr(layer.size());
}

/// What is to be said of named things, once for each pattern of numbered layers when all that it matches agree.
class Statements {
 public:
  /// Everything that patterns may match; `text`: what is wanted of it.
  void add(const std::string& name, const std::string& text) { text_of_.emplace_back(name, text); }
  std::string name_for(const std::string& name, const std::string& layer) {
    const std::string pattern = pattern_of(name, layer);
    if (pattern.empty()) return name;
    auto [known, fresh] = agrees_.emplace(pattern, true);
    if (fresh) known->second = all_agree(pattern);
    return known->second ? pattern : name;
  }

 private:
  bool all_agree(const std::string& pattern) const {
    const std::string* text = nullptr;
    for (const auto& [name, wanted] : text_of_) {
      if (!glob_match(pattern, name)) continue;
      if (text != nullptr && *text != wanted) return false;
      text = &wanted;
    }
    return true;
  }
  std::vector<std::pair<std::string, std::string>> text_of_;
  std::map<std::string, bool> agrees_;
};

}  // namespace

namespace {

/// Storage of parameters that the plan does not say yet.
void state_parameters(const Graph& graph, const WantedShardings& wanted, Plan& plan) {
  const std::vector<ShardingSpec> planned = parameter_specs(graph, plan);
  auto wanted_of = [&](const Value& value) {
    auto found = wanted.parameters.find(value.id);
    return found == wanted.parameters.end() ? planned[value.id.index()] : found->second;
  };
  Statements statements;
  for (const Parameter& p : graph.parameters()) {
    const Value& value = graph.value(p.value);
    statements.add(value.name, wanted_of(value).to_string());
  }
  std::set<std::string> said;
  for (const Parameter& p : graph.parameters()) {
    const Value& value = graph.value(p.value);
    if (wanted_of(value) == planned[value.id.index()]) continue;
    const std::string name = statements.name_for(value.name, graph.layer_name(value.layer));
    if (said.insert(name).second) plan.sharding.emplace_back(name, wanted_of(value));
  }
}

/// The wanted stored specs that the defaults would not give: they keep what is produced, a partial result as its first
/// user on the stage wants it.
std::map<ValueId, ShardingSpec> unusual_stored(const Graph& graph, const WantedShardings& wanted, const Plan& plan) {
  const std::vector<StageId> stages = stage_of_layers(plan, graph);
  std::map<ValueId, OpId> first_user;
  for (const Op& op : graph.ops())
    if (op.phase != Phase::kUpdate)
      for (ValueId id : op.inputs) first_user.emplace(id, op.id);
  auto index_in = [](const std::vector<ValueId>& ids, ValueId id) {
    return static_cast<size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
  };
  std::map<ValueId, ShardingSpec> unusual;
  for (const auto& [id, spec] : wanted.stored) {
    if (!graph.value(id).producer.is_valid()) continue;  // inputs lie as they are fed
    const Op& producer = graph.op(graph.value(id).producer);
    const StageId stage = stages[producer.layer.index()];
    const MeshShape& mesh = plan.stages[stage.index()].mesh;
    ShardingSpec by_default =
        normalized(wanted.strategies[producer.id.index()].outputs[index_in(producer.outputs, id)], mesh);
    if (auto user = first_user.find(id); !by_default.partial.is_empty() && user != first_user.end()) {
      const Op& op = graph.op(user->second);
      if (stages[op.layer.index()] == stage)
        by_default = normalized(wanted.strategies[op.id.index()].inputs[index_in(op.inputs, id)], mesh);
    }
    if (!(spec == by_default)) unusual.emplace(id, spec);
  }
  return unusual;
}

template <typename Text>
void drop_repeated(std::vector<std::pair<std::string, Text>>& statements) {
  std::set<std::string> seen;
  std::erase_if(statements, [&](const auto& statement) { return !seen.insert(statement.first).second; });
}

}  // namespace

Status state_shardings(const TrainingGraph& training, const WantedShardings& wanted, Plan& plan,
                       const SharedFacts& facts) {
  const Graph& graph = training.graph;
  state_parameters(graph, wanted, plan);
  const WantedShardings stated{{}, wanted.strategies, unusual_stored(graph, wanted, plan)};
  Assigner assigner(training, plan, facts, &stated);
  ALTIPLANO_ASSIGN(const ShardingAssignment assignment, assigner.run());
  Statements ops, values;
  auto text_of = [&](const Op& op) {
    return wanted.strategies[op.id.index()].to_string(assignment.facts->rules[op.id.index()]);
  };
  for (const Op& op : graph.ops()) {
    if (op.phase == Phase::kUpdate) continue;
    ops.add(op.name, text_of(op));
    for (ValueId id : op.outputs) {
      auto found = stated.stored.find(id);
      values.add(graph.value(id).name, found == stated.stored.end() ? std::string() : found->second.to_string());
    }
  }
  for (OpId id : assigner.surprises()) {
    const Op& op = graph.op(id);
    plan.strategies.emplace_back(ops.name_for(op.name, graph.layer_name(op.layer)), text_of(op));
  }
  for (const auto& [id, spec] : stated.stored) {
    const std::string& layer = graph.layer_name(graph.op(graph.value(id).producer).layer);
    plan.stored.emplace_back(values.name_for(graph.value(id).name, layer), spec);
  }
  drop_repeated(plan.strategies);
  drop_repeated(plan.stored);
  return Status::ok();
}

}  // namespace altiplano
