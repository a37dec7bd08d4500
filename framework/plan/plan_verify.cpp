#include <set>

#include "framework/base/text.hpp"
#include "framework/plan/plan.hpp"

namespace altiplano {

namespace {

Status check_fingerprint(const Plan& plan, const TrainingGraph& training) {
  uint64_t actual = training.graph.fingerprint();
  if (plan.graph_fingerprint == 0 || plan.graph_fingerprint == actual) return Status::ok();
  return invalid_argument("plan is for model {} with fingerprint {:016x}, the job's model {} has {:016x}",
                          plan.model_name, plan.graph_fingerprint, training.graph.name, actual);
}

Status check_layers(const Plan& plan, const Graph& graph) {
  std::vector<std::string> in_order;
  for (const PlanStage& stage : plan.stages) {
    if (stage.layers.empty()) return invalid_argument("plan stage {} has no layers", stage.name);
    in_order.insert(in_order.end(), stage.layers.begin(), stage.layers.end());
  }
  for (const std::string& layer : in_order)
    if (!graph.find_layer(layer).is_valid())
      return invalid_argument("plan names layer {}, the model has: {}", layer, join(graph.layers(), ", "));
  for (size_t i = 0; i < std::max(in_order.size(), graph.layers().size()); ++i) {
    if (i >= in_order.size()) return invalid_argument("plan puts layer {} on no stage", graph.layers()[i]);
    if (i >= graph.layers().size()) return invalid_argument("plan names layer {} twice", in_order[i]);
    if (in_order[i] != graph.layers()[i])
      return invalid_argument(
          "plan has layer {} where the model's order has {}; stages take contiguous layers in order", in_order[i],
          graph.layers()[i]);
  }
  return Status::ok();
}

Status check_meshes(const Plan& plan) {
  std::set<SlotId> seen;
  for (const PlanStage& stage : plan.stages) {
    if (stage.mesh.num_devices() != static_cast<int>(stage.slots.size()))
      return invalid_argument("plan stage {} has mesh {} of {} devices and {} slots", stage.name,
                              stage.mesh.to_string(), stage.mesh.num_devices(), stage.slots.size());
    for (SlotId slot : stage.slots)
      if (!seen.insert(slot).second)
        return invalid_argument("plan stage {} uses slot {}, which another stage has", stage.name, slot);
    AxisSet axes;
    for (const auto& [axis, degree] : stage.mesh.axes) {
      if (axes.contains(axis))
        return invalid_argument("plan stage {} names axis {} twice", stage.name, to_string(axis));
      axes.insert(axis);
      if (degree < 1)
        return invalid_argument("plan stage {}: degree {} of axis {} must be at least 1", stage.name, degree,
                                to_string(axis));
      if (axis != Axis::kData && axis != Axis::kTensor)
        return invalid_argument("plan stage {}: axis {} cannot be run yet; valid: data, tensor", stage.name,
                                to_string(axis));
    }
    if (stage.mesh.degree(Axis::kData) != plan.data_degree())
      return invalid_argument("plan stage {} has data degree {}, stage {} has {}; all stages need the same", stage.name,
                              stage.mesh.degree(Axis::kData), plan.stages[0].name, plan.data_degree());
    if (stage.zero < 0 || stage.zero > 1)
      return invalid_argument("plan stage {}: zero {} is not one of 0, 1", stage.name, stage.zero);
  }
  for (int i = 0; i < plan.num_slots(); ++i)
    if (!seen.count(SlotId(i)))
      return invalid_argument("plan has {} slots and does not use slot {}", plan.num_slots(), i);
  return Status::ok();
}

Status check_batch(const Plan& plan, const TrainingGraph& training) {
  int64_t batch = training.graph.value(training.inputs[0]).shape[0];
  if (plan.global_batch != batch)
    return invalid_argument("plan has global batch {}, the job has {}", plan.global_batch, batch);
  if (plan.microbatch < 1 || plan.num_microbatches < 1)
    return invalid_argument("plan has microbatch {} x {} microbatches; both must be at least 1", plan.microbatch,
                            plan.num_microbatches);
  int64_t product = plan.microbatch * plan.num_microbatches * plan.data_degree();
  if (product != batch)
    return invalid_argument("plan: microbatch {} x microbatches {} x data {} = {}, the global batch is {}",
                            plan.microbatch, plan.num_microbatches, plan.data_degree(), product, batch);
  return Status::ok();
}

Status check_specs(const Plan& plan, const Graph& graph) {
  for (const auto& [pattern, spec] : plan.sharding) {
    bool matched = false;
    for (const Parameter& parameter : graph.parameters()) {
      const Value& value = graph.value(parameter.value);
      if (!glob_match(pattern, value.name)) continue;
      matched = true;
      Status status = check_spec(spec, value.shape);
      if (!status.is_ok()) return status.with_context(fmt::format("plan, sharding of {}", value.name));
      if (!spec.partial.is_empty())
        return invalid_argument("plan, sharding of {}: a parameter cannot be stored partial", value.name);
    }
    if (!matched) return invalid_argument("plan, sharding: '{}' matches no parameter of the model", pattern);
  }
  return Status::ok();
}

}  // namespace

Status verify_plan(const Plan& plan, const TrainingGraph& training) {
  if (plan.stages.empty()) return invalid_argument("plan has no stages");
  if (plan.chunks != 1) return invalid_argument("plan has {} chunks; schedules that exist take 1", plan.chunks);
  ALTIPLANO_RETURN_IF_ERROR(check_fingerprint(plan, training));
  ALTIPLANO_RETURN_IF_ERROR(check_layers(plan, training.graph));
  ALTIPLANO_RETURN_IF_ERROR(check_meshes(plan));
  ALTIPLANO_RETURN_IF_ERROR(check_batch(plan, training));
  ALTIPLANO_RETURN_IF_ERROR(check_specs(plan, training.graph));
  if (plan.compute_dtype != training.compute_dtype)
    return invalid_argument("plan computes in {}, the job in {}", to_string(plan.compute_dtype),
                            to_string(training.compute_dtype));
  return Status::ok();
}

}  // namespace altiplano
