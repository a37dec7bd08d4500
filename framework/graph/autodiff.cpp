// Reverse-mode differentiation: ops in reverse order, each asks its definition for its gradient. Gradients that reach
// one value from several users are added as they come, in the layer of the user (so that one value crosses a stage
// boundary, not two). Contributions to a parameter are never added here: they are listed, the lowering accumulates
// them.
#include "framework/graph/op_definition.hpp"
#include "framework/graph/training_graph.hpp"

namespace altiplano {
namespace {

class Autodiff {
 public:
  explicit Autodiff(TrainingGraph& training)
      : training_(training), graph_(training.graph), gradients_(graph_.values().size()) {
    find_needs();
  }

  Status run() {
    if (!needs_[training_.loss_sum.index()])
      return invalid_argument("graph {}: the loss '{}' depends on no trainable parameter", graph_.name,
                              graph_.value(training_.loss_sum).name);
    size_t num_forward = graph_.ops().size();
    ALTIPLANO_RETURN_IF_ERROR(seed());
    for (size_t i = num_forward; i-- > 0;) ALTIPLANO_RETURN_IF_ERROR(visit(OpId(static_cast<int64_t>(i))));
    return list_parameters();
  }

 private:
  /// A value needs a gradient when a trainable parameter is among what it is computed from.
  void find_needs() {
    needs_.resize(graph_.values().size());
    for (const Parameter& parameter : graph_.parameters()) needs_[parameter.value.index()] = parameter.trainable;
    for (const Op& op : graph_.ops()) {
      bool any = false;
      for (ValueId input : op.inputs) any = any || needs_[input.index()];
      const int most = OpTable::instance().get(op.kind).num_differentiable;
      for (size_t i = 0; i < op.outputs.size(); ++i)
        needs_[op.outputs[i].index()] =
            any && is_floating(graph_.value(op.outputs[i]).dtype) && (most < 0 || i < static_cast<size_t>(most));
    }
  }

  Status seed() {
    const Value loss = graph_.value(training_.loss_sum);
    ALTIPLANO_ASSIGN(
        auto one, graph_.add_op("fill", loss.name + ".grad.seed", {},
                                {{"shape", loss.shape}, {"dtype", std::string(to_string(loss.dtype))}, {"value", 1.0}},
                                loss.layer, Phase::kBackward));
    gradients_[loss.id.index()] = one[0];
    return Status::ok();
  }

  Status visit(OpId id) {
    const Op op = graph_.op(id);
    std::vector<ValueId> output_gradients;
    bool flows = false, wanted = false;
    for (ValueId output : op.outputs) output_gradients.push_back(gradients_[output.index()]);
    for (ValueId gradient : output_gradients) flows = flows || gradient.is_valid();
    for (ValueId input : op.inputs) wanted = wanted || needs_[input.index()];
    if (!flows || !wanted) return Status::ok();
    const OpDefinition& definition = OpTable::instance().get(op.kind);
    if (!definition.gradient)
      return invalid_argument("op '{}': kind '{}' is not differentiable, but the loss reaches a parameter through it",
                              op.name, op.kind);
    GradientContext context(graph_, op, std::move(output_gradients), needs_);
    return distribute(context, definition.gradient(context));
  }

  Status distribute(GradientContext& context, const std::vector<ValueId>& input_gradients) {
    if (!context.status().is_ok()) return context.status();
    const Op& op = context.op();
    ALTIPLANO_ASSERT(input_gradients.size() == op.inputs.size(), "gradient of {} returned {} values for {} inputs",
                     op.kind, input_gradients.size(), op.inputs.size());
    for (size_t i = 0; i < op.inputs.size(); ++i)
      accumulate(context, op.inputs[i], input_gradients[i], std::to_string(i));
    size_t extra = 0;
    for (auto [value, gradient] : context.extra_gradients())
      accumulate(context, value, gradient, fmt::format("x{}", extra++));
    return Status::ok();
  }

  void accumulate(GradientContext& context, ValueId value, ValueId gradient, const std::string& suffix) {
    if (!gradient.is_valid() || !needs_[value.index()]) return;
    const Value target = graph_.value(value);
    ALTIPLANO_ASSERT(graph_.value(gradient).shape == target.shape, "gradient of '{}' by {} is {}, not {}", target.name,
                     context.op().kind, to_string(graph_.value(gradient).shape), to_string(target.shape));
    DType dtype = context.gradient_dtype(value);
    if (graph_.value(gradient).dtype != dtype)
      gradient = context.emit1("cast", "cast" + suffix, {gradient}, {{"dtype", std::string(to_string(dtype))}});
    if (target.role == Role::kParameter) {
      contributions_[value].push_back(gradient);
      return;
    }
    ValueId& pending = gradients_[value.index()];
    pending = pending.is_valid() ? context.emit1("add", "sum" + suffix, {pending, gradient}) : gradient;
  }

  Status list_parameters() {
    for (const Parameter& parameter : graph_.parameters()) {
      if (!parameter.trainable) continue;
      const Value value = graph_.value(parameter.value);
      auto found = contributions_.find(value.id);
      if (found == contributions_.end())
        return invalid_argument("parameter '{}' does not influence the loss; freeze it or remove it", value.name);
      if (graph_.find_value(value.name + ".grad").is_valid())
        return invalid_argument("the name '{}.grad' is taken; it is kept for the gradient of the parameter",
                                value.name);
      ParameterTraining entry;
      entry.parameter = value.id;
      entry.contributions = found->second;
      entry.gradient = graph_.add_value(value.name + ".grad", value.shape, accumulate_dtype(value.dtype),
                                        Role::kGradient, value.layer);
      training_.parameters.push_back(std::move(entry));
    }
    return Status::ok();
  }

  TrainingGraph& training_;
  Graph& graph_;
  std::vector<bool> needs_;         // by value of the forward graph
  std::vector<ValueId> gradients_;  // by value of the forward graph: what has arrived so far
  std::map<ValueId, std::vector<ValueId>> contributions_;
};

}  // namespace

Result<TrainingGraph> differentiate(ModelGraph model) {
  TrainingGraph training;
  training.graph = std::move(model.graph);
  training.inputs = std::move(model.inputs);
  training.loss_sum = model.loss_sum;
  training.token_count = model.token_count;
  training.logits = model.logits;
  for (const Parameter& parameter : training.graph.parameters())
    training.compute_dtype = training.graph.value(parameter.value).dtype;
  ALTIPLANO_RETURN_IF_ERROR(Autodiff(training).run());
  return training;
}

}  // namespace altiplano
