#include <algorithm>
#include <map>
#include <set>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/graph/samples_together.hpp"
#include "framework/plan/plan.hpp"
#include "framework/sharding/graph_facts.hpp"

namespace altiplano {

namespace {

/// A refusal that starts with the place in the plan's file, when it came from one.
template <typename... Args>
Status refuse(const Plan& plan, const std::string& key, fmt::format_string<Args...> format, Args&&... args) {
  return invalid_argument("{}{}", plan.where(key), fmt::format(format, std::forward<Args>(args)...));
}

std::string key_of(size_t stage, const char* key) {
  return fmt::format("stages[{}].{}", stage, key);
}

Status check_fingerprint(const Plan& plan, const TrainingGraph& training) {
  uint64_t actual = training.fingerprint;
  if (plan.graph_fingerprint == 0 || plan.graph_fingerprint == actual) return Status::ok();
  return refuse(plan, "graph.fingerprint",
                "plan is for model {} with fingerprint {:016x}, the job's model {} has {:016x}", plan.model_name,
                plan.graph_fingerprint, training.graph.name, actual);
}

/// A layer of the plan and where it stands.
struct PlacedLayer {
  std::string name, key;
};

std::vector<PlacedLayer> layers_in_order(const Plan& plan) {
  std::vector<PlacedLayer> layers;
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (size_t i = 0; i < plan.stages[s].layers.size(); ++i)
      layers.push_back({plan.stages[s].layers[i], fmt::format("stages[{}].layers[{}]", s, i)});
  return layers;
}

Status check_known_layers(const Plan& plan, const Graph& graph, const std::vector<PlacedLayer>& layers) {
  const std::set<std::string> known(graph.layers().begin(), graph.layers().end());
  std::set<std::string> seen;
  for (const PlacedLayer& layer : layers) {
    if (!known.contains(layer.name))
      return refuse(plan, layer.key, "plan names layer {}, the model has: {}", layer.name, join(graph.layers(), ", "));
    if (!seen.insert(layer.name).second) return refuse(plan, layer.key, "plan names layer {} twice", layer.name);
  }
  return Status::ok();
}

Status check_layers(const Plan& plan, const Graph& graph) {
  for (size_t s = 0; s < plan.stages.size(); ++s)
    if (plan.stages[s].layers.empty())
      return refuse(plan, key_of(s, "layers"), "plan stage {} has no layers", plan.stages[s].name);
  const std::vector<PlacedLayer> layers = layers_in_order(plan);
  ALTIPLANO_RETURN_IF_ERROR(check_known_layers(plan, graph, layers));
  std::set<std::string> named;
  for (const PlacedLayer& layer : layers) named.insert(layer.name);
  for (const std::string& layer : graph.layers())
    if (!named.contains(layer)) return refuse(plan, "stages", "plan puts layer {} on no stage", layer);
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i].name != graph.layers()[i])
      return refuse(plan, layers[i].key,
                    "plan has layer {} where the model's order has {}; stages take contiguous layers in order",
                    layers[i].name, graph.layers()[i]);
  return Status::ok();
}

Status check_axes(const Plan& plan, size_t s) {
  const PlanStage& stage = plan.stages[s];
  const std::string key = key_of(s, "mesh");
  AxisSet axes;
  for (const auto& [axis, degree] : stage.mesh.axes) {
    if (axes.contains(axis)) return refuse(plan, key, "plan stage {} names axis {} twice", stage.name, to_string(axis));
    axes.insert(axis);
    if (degree < 1)
      return refuse(plan, key, "plan stage {}: degree {} of axis {} must be at least 1", stage.name, degree,
                    to_string(axis));
    if (axis != Axis::kData && axis != Axis::kTensor)
      return refuse(plan, key, "plan stage {}: axis {} cannot be run yet; valid: data, tensor", stage.name,
                    to_string(axis));
  }
  if (stage.mesh.degree(Axis::kData) != plan.data_degree())
    return refuse(plan, key, "plan stage {} has data degree {}, stage {} has {}; all stages need the same", stage.name,
                  stage.mesh.degree(Axis::kData), plan.stages[0].name, plan.data_degree());
  return Status::ok();
}

/// `owner`: stage of every slot seen so far.
Status check_slots(const Plan& plan, size_t s, std::map<SlotId, size_t>& owner) {
  const PlanStage& stage = plan.stages[s];
  if (stage.mesh.num_devices() != static_cast<int>(stage.slots.size()))
    return refuse(plan, key_of(s, "slots"), "plan stage {} has mesh {} of {} and {}; list one slot per device",
                  stage.name, stage.mesh.to_string(), counted(stage.mesh.num_devices(), "device"),
                  counted(static_cast<int64_t>(stage.slots.size()), "slot"));
  for (SlotId slot : stage.slots) {
    auto [first, fresh] = owner.emplace(slot, s);
    if (fresh) continue;
    if (first->second == s)
      return refuse(plan, key_of(s, "slots"), "plan stage {} uses slot {} twice", stage.name, slot);
    return refuse(plan, key_of(s, "slots"), "plan stage {} uses slot {}, which stage {} has", stage.name, slot,
                  plan.stages[first->second].name);
  }
  return Status::ok();
}

Status check_stages(const Plan& plan) {
  std::map<SlotId, size_t> owner;
  std::set<std::string> names;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    if (!names.insert(stage.name).second) return refuse(plan, key_of(s, "name"), "two stages are named {}", stage.name);
    ALTIPLANO_RETURN_IF_ERROR(check_slots(plan, s, owner));
    ALTIPLANO_RETURN_IF_ERROR(check_axes(plan, s));
    if (stage.zero < 0 || stage.zero > Plan::kMostZero)
      return refuse(plan, key_of(s, "zero"), "plan stage {}: zero {} is not one of 0, 1, 2, 3", stage.name, stage.zero);
  }
  for (int i = 0; i < plan.num_slots(); ++i)
    if (!owner.contains(SlotId(i)))
      return refuse(plan, "stages", "plan has {} and does not use slot {}", counted(plan.num_slots(), "slot"), i);
  return Status::ok();
}

/// The graph's copies of forward ops are what is run: the plan must say the same.
Status check_recompute(const Plan& plan, const TrainingGraph& training) {
  std::set<std::string> said;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    for (size_t i = 0; i < stage.recompute.size(); ++i) {
      const std::string& layer = stage.recompute[i];
      const std::string key = fmt::format("stages[{}].recompute[{}]", s, i);
      if (std::ranges::find(stage.layers, layer) == stage.layers.end())
        return refuse(plan, key, "plan stage {} recomputes layer {}, which it does not have; it has {}", stage.name,
                      layer, join(stage.layers, ", "));
      if (!training.recomputed.contains(layer))
        return refuse(plan, key, "plan stage {} recomputes layer {}, whose backward needs nothing of it", stage.name,
                      layer);
      if (!said.insert(layer).second)
        return refuse(plan, key, "plan stage {} recomputes layer {} twice", stage.name, layer);
    }
  }
  for (const std::string& layer : training.recomputed)
    if (!said.contains(layer))
      return refuse(plan, "stages", "plan keeps all of layer {}, the job's graph recomputes it", layer);
  return Status::ok();
}

Status check_batch(const Plan& plan, const TrainingGraph& training) {
  int64_t batch = training.graph.value(training.inputs[0]).shape[0];
  if (plan.global_batch != batch)
    return refuse(plan, "batch.global", "plan has global batch {}, the job has {}", plan.global_batch, batch);
  if (plan.microbatch < 1 || plan.num_microbatches < 1)
    return refuse(plan, "batch.microbatch", "plan has microbatch {} x {}; both must be at least 1", plan.microbatch,
                  counted(plan.num_microbatches, "microbatch", "microbatches"));
  if (plan.num_microbatches > Plan::kMostMicrobatches)
    return refuse(plan, "batch.microbatches", "plan has {} microbatches; at most {}", plan.num_microbatches,
                  Plan::kMostMicrobatches);
  // Exact up to 2^53, and beyond that certainly not the batch.
  double product = static_cast<double>(plan.microbatch) * plan.num_microbatches * plan.data_degree();
  if (product != static_cast<double>(batch))
    return refuse(plan, "batch.microbatches",
                  "plan: microbatch {} x microbatches {} x data {} = {:.0f}, the global batch is {}", plan.microbatch,
                  plan.num_microbatches, plan.data_degree(), product, batch);
  ALTIPLANO_ASSIGN(const int64_t together, samples_together(training.graph));
  if (together > 0 && together != plan.microbatch * plan.data_degree())
    return refuse(plan, "batch.microbatch",
                  "plan computes {} x data {} = {} samples at once, the model's statistics are over {}; valid: {}",
                  plan.microbatch, plan.data_degree(), plan.microbatch * plan.data_degree(), together,
                  counted(batch / together, "microbatch", "microbatches"));
  return Status::ok();
}

Status check_specs(const Plan& plan, const Graph& graph) {
  for (const auto& [pattern, spec] : plan.sharding) {
    bool matched = false;
    const std::string key = "sharding." + pattern;
    for (const Parameter& parameter : graph.parameters()) {
      const Value& value = graph.value(parameter.value);
      if (!glob_match(pattern, value.name)) continue;
      matched = true;
      Status status = check_spec(spec, value.shape);
      if (!status.is_ok()) {
        if (!plan.file.empty()) return refuse(plan, key, "{} (parameter {})", status.message(), value.name);
        return status.with_context(fmt::format("plan, sharding of {}", value.name));
      }
      if (!spec.partial.is_empty())
        return refuse(plan, key, "plan, sharding of {}: a parameter cannot be stored partial", value.name);
    }
    if (!matched) return refuse(plan, key, "plan, sharding: '{}' matches no parameter of the model", pattern);
  }
  return Status::ok();
}

/// Every pattern names something, and what it says is possible there on the mesh of its stage.
Status check_strategies(const Plan& plan, const Graph& graph, const GraphFacts* facts) {
  if (plan.strategies.empty()) return Status::ok();
  const std::vector<StageId> stages = stage_of_layers(plan, graph);
  std::set<std::string> matched;
  for (const Op& op : graph.ops()) {
    if (op.phase == Phase::kUpdate) continue;
    for (const auto& [pattern, text] : plan.strategies) {
      if (!glob_match(pattern, op.name)) continue;
      matched.insert(pattern);
      ShardingRule own;
      if (facts == nullptr) {
        ALTIPLANO_ASSIGN(own, rule_of(graph, op));
      }
      const ShardingRule& rule = facts != nullptr ? facts->rules[op.id.index()] : own;
      const PlanStage& stage = plan.stages[stages[op.layer.index()].index()];
      auto strategy = parse_strategy(text, rule, stage.mesh);
      if (!strategy.is_ok())
        return refuse(plan, "strategies." + pattern, "{} (op {} {})", strategy.status().message(), op.kind, op.name);
      break;
    }
  }
  for (const auto& statement : plan.strategies) {
    const std::string& pattern = statement.first;
    if (!matched.contains(pattern) && std::ranges::none_of(graph.ops(), [&](const Op& op) {
          return op.phase != Phase::kUpdate && glob_match(pattern, op.name);
        }))
      return refuse(plan, "strategies." + pattern,
                    "'{}' matches no op of the model as this device fuses it; make the plan anew for this device",
                    pattern);
  }
  return Status::ok();
}

Status check_stored(const Plan& plan, const Graph& graph) {
  for (const auto& [pattern, spec] : plan.stored) {
    const std::string key = "stored." + pattern;
    bool matched = false;
    for (const Value& value : graph.values()) {
      if (!value.producer.is_valid() || graph.op(value.producer).phase == Phase::kUpdate ||
          !glob_match(pattern, value.name))
        continue;
      matched = true;
      if (Status status = check_spec(spec, value.shape); !status.is_ok())
        return refuse(plan, key, "{} (value {})", status.message(), value.name);
      if (!spec.partial.is_empty()) return refuse(plan, key, "{} cannot be kept partial", value.name);
    }
    if (!matched)
      return refuse(
          plan, key,
          "'{}' matches no activation of the model as this device fuses it; make the plan anew for this device",
          pattern);
  }
  return Status::ok();
}

}  // namespace

Status verify_plan(const Plan& plan, const TrainingGraph& training, const GraphFacts* facts) {
  if (plan.stages.empty()) return refuse(plan, "stages", "plan has no stages");
  if (plan.chunks != 1)
    return refuse(plan, "schedule.chunks", "plan has {} chunks; schedules that exist take 1", plan.chunks);
  ALTIPLANO_RETURN_IF_ERROR(check_fingerprint(plan, training));
  ALTIPLANO_RETURN_IF_ERROR(check_layers(plan, training.graph));
  ALTIPLANO_RETURN_IF_ERROR(check_stages(plan));
  ALTIPLANO_RETURN_IF_ERROR(check_recompute(plan, training));
  ALTIPLANO_RETURN_IF_ERROR(check_batch(plan, training));
  ALTIPLANO_RETURN_IF_ERROR(check_specs(plan, training.graph));
  ALTIPLANO_RETURN_IF_ERROR(check_strategies(plan, training.graph, facts));
  ALTIPLANO_RETURN_IF_ERROR(check_stored(plan, training.graph));
  if (plan.compute_dtype != training.compute_dtype)
    return refuse(plan, "precision.compute", "plan computes in {}, the job in {}", to_string(plan.compute_dtype),
                  to_string(training.compute_dtype));
  return Status::ok();
}

}  // namespace altiplano
