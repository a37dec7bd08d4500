#include "framework/graph/recompute.hpp"

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

/// Writes the graph anew, with the copies where they belong.
class Recompute {
 public:
  Recompute(TrainingGraph& training, const std::set<std::string>& layers)
      : training_(training), from_(training.graph), new_ids_(from_.values().size()), again_(from_.values().size()) {
    for (const std::string& name : from_.layers()) chosen_.push_back(layers.count(name) > 0);
    find_kept();
  }

  Status run() {
    to_.name = from_.name;
    for (const std::string& layer : from_.layers()) to_.add_layer(layer);
    for (const Value& value : from_.values()) ALTIPLANO_RETURN_IF_ERROR(bring(value));
    for (Parameter parameter : from_.parameters()) {
      parameter.value = now(parameter.value);
      to_.add_parameter(parameter);
    }
    for (ValueId* id : {&training_.loss_sum, &training_.token_count, &training_.logits}) *id = now(*id);
    for (ValueId& id : training_.inputs) id = now(id);
    for (ParameterTraining& p : training_.parameters) {
      p.parameter = now(p.parameter), p.gradient = now(p.gradient);
      for (ValueId& id : p.contributions) id = now(id);
    }
    training_.graph = std::move(to_);
    return Status::ok();
  }

 private:
  /// Kept: what other layers' forward ops read, and results of the model.
  void find_kept() {
    kept_.assign(from_.values().size(), false);
    needed_by_.resize(from_.layers().size());
    for (ValueId id : {training_.loss_sum, training_.token_count, training_.logits}) kept_[id.index()] = true;
    for (const Op& op : from_.ops())
      for (ValueId id : op.inputs)
        if (op.phase == Phase::kForward && from_.value(id).layer != op.layer) kept_[id.index()] = true;
    for (const Op& op : from_.ops())
      for (ValueId id : op.inputs)
        if (op.phase == Phase::kBackward && may_recompute(id))
          needed_by_[from_.value(id).layer.index()].insert(from_.value(id).producer);
  }

  /// An activation that a forward op of a chosen layer makes for this layer alone.
  bool may_recompute(ValueId id) const {
    const Value& value = from_.value(id);
    return value.producer.is_valid() && chosen_[value.layer.index()] && !kept_[id.index()] &&
           from_.op(value.producer).phase == Phase::kForward;
  }

  Status bring(const Value& value) {
    if (!value.producer.is_valid()) {
      new_ids_[value.id.index()] = to_.add_value(value.name, value.shape, value.dtype, value.role, value.layer);
      return Status::ok();
    }
    const Op& op = from_.op(value.producer);
    if (value.id != op.outputs[0]) return Status::ok();  // an op brings all its outputs
    const bool backward = op.phase == Phase::kBackward;
    if (backward) ALTIPLANO_RETURN_IF_ERROR(compute_again(op.layer));
    ALTIPLANO_ASSIGN(const auto outputs, add(op, op.name, op.phase, backward));
    for (size_t i = 0; i < outputs.size(); ++i) {
      to_.value(outputs[i]).role = from_.value(op.outputs[i]).role;
      new_ids_[op.outputs[i].index()] = outputs[i];
    }
    return Status::ok();
  }

  /// Once per layer: copies of the ops that its backward ops need, and of those that these need, in their order.
  Status compute_again(LayerId layer) {
    const std::set<OpId> roots = std::exchange(needed_by_[layer.index()], {});
    if (roots.empty()) return Status::ok();
    training_.recomputed.insert(from_.layer_name(layer));
    std::set<OpId> all = roots;
    for (std::vector<OpId> open(roots.begin(), roots.end()); !open.empty();) {
      const Op& op = from_.op(open.back());
      open.pop_back();
      for (ValueId id : op.inputs)
        if (may_recompute(id) && all.insert(from_.value(id).producer).second) open.push_back(from_.value(id).producer);
    }
    for (OpId id : all) {
      const Op& op = from_.op(id);
      ALTIPLANO_ASSIGN(const auto outputs, add(op, op.name + ".again", Phase::kBackward, true));
      for (size_t i = 0; i < outputs.size(); ++i)
        if (!kept_[op.outputs[i].index()]) again_[op.outputs[i].index()] = outputs[i];
    }
    return Status::ok();
  }

  Result<std::vector<ValueId>> add(const Op& op, const std::string& name, Phase phase, bool reads_again) {
    std::vector<ValueId> inputs;
    for (ValueId id : op.inputs) {
      const ValueId again = again_[id.index()];
      inputs.push_back(reads_again && again.is_valid() ? again : now(id));
    }
    return to_.add_op(op.kind, name, std::move(inputs), op.attributes, op.layer, phase);
  }

  ValueId now(ValueId before) const { return before.is_valid() ? new_ids_[before.index()] : before; }

  TrainingGraph& training_;
  const Graph& from_;
  Graph to_;
  std::vector<bool> chosen_;               // by layer
  std::vector<bool> kept_;                 // by value
  std::vector<std::set<OpId>> needed_by_;  // by layer: forward ops whose results its backward ops read
  std::vector<ValueId> new_ids_, again_;   // by value before
};

}  // namespace

Result<std::set<std::string>> layers_to_recompute(const Graph& graph, const std::vector<std::string>& wanted) {
  const std::vector<std::string>& all = graph.layers();
  if (wanted == std::vector<std::string>{"full"}) return std::set<std::string>(all.begin(), std::prev(all.end()));
  std::set<std::string> layers;
  for (const std::string& pattern : wanted) {
    bool matches = false;
    for (const std::string& layer : all)
      if (glob_match(pattern, layer)) layers.insert(layer), matches = true;
    if (!matches)
      return invalid_argument("parallel.recompute: no layer is named '{}'; valid: none, auto, full, or layers: {}",
                              pattern, join(all, ", "));
  }
  return layers;
}

Status recompute(TrainingGraph& training, const std::set<std::string>& layers) {
  if (layers.empty()) return Status::ok();
  return Recompute(training, layers).run();
}

}  // namespace altiplano
