#include "framework/base/text.hpp"
#include "framework/graph/fusion.hpp"
#include "framework/graph/op_definition.hpp"
#include "framework/graph/pass.hpp"
#include "framework/graph/recompute.hpp"
#include "framework/graph/training_graph.hpp"

namespace altiplano {
namespace {

Attributes update_attributes(const OptimizerOptions& options, bool decay) {
  double weight_decay = decay ? options.weight_decay : 0.0;
  if (options.name == "sgd") return {{"momentum", options.momentum}, {"weight_decay", weight_decay}};
  return {
      {"beta1", options.beta1}, {"beta2", options.beta2}, {"epsilon", options.epsilon}, {"weight_decay", weight_decay}};
}

Status check_options(const OptimizerOptions& options) {
  if (options.name != "adamw" && options.name != "sgd")
    return invalid_argument("optimizer.name: '{}' is unknown; there are adamw and sgd", options.name);
  auto is_share = [](double x) { return x >= 0 && x < 1; };
  if (!is_share(options.beta1) || !is_share(options.beta2))
    return invalid_argument("optimizer.betas: [{}, {}] must be in [0, 1)", options.beta1, options.beta2);
  if (!is_share(options.momentum))
    return invalid_argument("optimizer.momentum: {} must be in [0, 1)", options.momentum);
  if (!(options.epsilon > 0)) return invalid_argument("optimizer.epsilon: {} must be positive", options.epsilon);
  if (!(options.weight_decay >= 0))
    return invalid_argument("optimizer.weight_decay: {} must not be negative", options.weight_decay);
  return Status::ok();
}

/// States, norm and update of one parameter.
class ParameterUpdate {
 public:
  ParameterUpdate(Graph& graph, const OptimizerOptions& options, ParameterTraining& entry)
      : graph_(graph), options_(options), entry_(entry), value_(graph.value(entry.parameter)) {}

  Status add() {
    ALTIPLANO_ASSIGN(auto norm, op("sum_squares", "grad_norm", {entry_.gradient}, {}));
    entry_.norm_squared = norm[0];
    entry_.states.push_back(add_state("m"));
    if (options_.name == "adamw") entry_.states.push_back(add_state("v"));
    std::vector<ValueId> operands = {entry_.parameter, entry_.gradient};
    operands.insert(operands.end(), entry_.states.begin(), entry_.states.end());
    const bool has_master = value_.dtype != accumulate_dtype(value_.dtype);
    if (has_master) entry_.states.push_back(operands[0] = add_state("master"));
    bool decay = graph_.find_parameter(entry_.parameter)->decay;
    ALTIPLANO_ASSIGN(auto updated, op(options_.name, "update", operands, update_attributes(options_, decay)));
    entry_.update_ops.push_back(graph_.value(updated[0]).producer);
    entry_.updated = updated[0];
    return has_master ? round_master() : Status::ok();
  }

 private:
  Result<std::vector<ValueId>> op(const std::string& kind, const std::string& suffix, std::vector<ValueId> inputs,
                                  Attributes attributes) {
    return graph_.add_op(kind, value_.name + "." + suffix, std::move(inputs), std::move(attributes), value_.layer,
                         Phase::kUpdate);
  }

  ValueId add_state(const std::string& suffix) {
    return graph_.add_value(value_.name + "." + suffix, value_.shape, accumulate_dtype(value_.dtype),
                            Role::kOptimizerState, value_.layer);
  }

  Status round_master() {
    ALTIPLANO_ASSIGN(auto rounded,
                     op("cast", "rounded", {entry_.updated}, {{"dtype", std::string(to_string(value_.dtype))}}));
    entry_.update_ops.push_back(graph_.value(rounded[0]).producer);
    entry_.updated = rounded[0];
    return Status::ok();
  }

  Graph& graph_;
  const OptimizerOptions& options_;
  ParameterTraining& entry_;
  const Value value_;
};

}  // namespace

Status add_optimizer(TrainingGraph& training, const OptimizerOptions& options) {
  ALTIPLANO_RETURN_IF_ERROR(check_options(options));
  training.optimizer = options;
  for (ParameterTraining& entry : training.parameters)
    ALTIPLANO_RETURN_IF_ERROR(ParameterUpdate(training.graph, options, entry).add());
  return Status::ok();
}

Result<TrainingGraph> make_training_graph(ModelGraph model, DType dtype, const OptimizerOptions& options, uint64_t seed,
                                          const std::set<std::string>& fused_kinds,
                                          const std::set<std::string>& recomputed) {
  ALTIPLANO_RETURN_IF_ERROR(run_pass("precision", model.graph, [&](Graph&) { return set_precision(model, dtype); }));
  const uint64_t as_written = fingerprint(fmt::format("{:016x} {}", model.graph.fingerprint(), options.name));
  ALTIPLANO_RETURN_IF_ERROR(run_pass("fusion", model.graph, [&](Graph&) -> Status {
    ALTIPLANO_ASSIGN(model, fuse(model, fused_kinds));
    return Status::ok();
  }));
  TrainingGraph training;
  ALTIPLANO_RETURN_IF_ERROR(run_pass("autodiff", training.graph, [&](Graph&) -> Status {
    ALTIPLANO_ASSIGN(training, differentiate(std::move(model)));
    return Status::ok();
  }));
  ALTIPLANO_RETURN_IF_ERROR(
      run_pass("recompute", training.graph, [&](Graph&) { return recompute(training, recomputed); }));
  ALTIPLANO_RETURN_IF_ERROR(
      run_pass("optimizer", training.graph, [&](Graph&) { return add_optimizer(training, options); }));
  training.compute_dtype = dtype;
  training.seed = seed;
  training.fingerprint = as_written;
  return training;
}

}  // namespace altiplano
