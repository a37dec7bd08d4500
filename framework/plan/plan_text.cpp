// The Plan's text form: YAML that people read and that parses back (plan_reader.cpp).
#include <set>

#include "framework/base/text.hpp"
#include "framework/options/yaml_text.hpp"
#include "framework/plan/layer_names.hpp"
#include "framework/plan/plan.hpp"

namespace altiplano {

namespace {

std::string layers_text(const std::vector<std::string>& layers) {
  std::vector<std::string> parts;
  for (const std::string& part : abbreviated_layers(layers)) parts.push_back(yaml_text(part));
  return "[" + join(parts, ", ") + "]";
}

/// "0-3,6"
std::string slots_text(const std::vector<SlotId>& slots) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < slots.size();) {
    size_t end = i + 1;
    while (end < slots.size() && slots[end].value == slots[i].value + static_cast<int>(end - i)) ++end;
    parts.push_back(end - i > 1 ? fmt::format("{}-{}", slots[i], slots[end - 1]) : fmt::format("{}", slots[i]));
    i = end;
  }
  return join(parts, ",");
}

std::string kernels_text(const KernelTable& kernels) {
  if (kernels.is_empty()) return {};
  std::string out = fmt::format("kernels:\n  machine: {}\n  forms:\n", yaml_quoted(kernels.machine));
  for (const auto& [shape, form] : kernels.forms)
    out += fmt::format("    {}: {}\n", yaml_quoted(shape), yaml_text(form));
  return out;
}

std::string prediction_text(const PlanPrediction& predicted) {
  if (predicted.peak_memory.empty()) return {};
  std::vector<std::string> peaks;
  for (Bytes peak : predicted.peak_memory) peaks.push_back(std::to_string(peak.value));
  return fmt::format(
      "predicted: {{step_seconds: {:.6g}, tokens_per_second: {:.6g}, bubble: {:.4g}, peak_memory_bytes: [{}]}}\n",
      predicted.step.value, predicted.tokens_per_second, predicted.bubble, join(peaks, ", "));
}

}  // namespace

std::string Plan::to_yaml() const {
  std::string out = fmt::format("altiplano_plan: {}\n", kFormatVersion);
  out += fmt::format("graph: {{model: {}, fingerprint: {:016x}}}\n", yaml_text(model_name), graph_fingerprint);
  out += fmt::format("cluster: {{shape: {}, fingerprint: {:016x}{}}}\n", yaml_text(cluster_shape), cluster_fingerprint,
                     cluster_figures.empty() ? "" : ", figures: " + yaml_text(cluster_figures));
  out += fmt::format("batch: {{global: {}, microbatch: {}, microbatches: {}, replicas: {}}}\n", global_batch,
                     microbatch, num_microbatches, data_degree());
  out += fmt::format("schedule: {{kind: {}, chunks: {}}}\n", yaml_text(schedule), chunks);
  out += fmt::format("precision: {{compute: {}}}\n", to_string(compute_dtype));
  out += fmt::format("sequence_parallel: {}\nplanner: {}\nstages:\n", sequence_parallel, yaml_text(planner));
  for (const PlanStage& stage : stages)
    out += fmt::format("  - {{name: {}, layers: {}, slots: \"{}\", mesh: {}, zero: {}{}}}\n", yaml_text(stage.name),
                       layers_text(stage.layers), slots_text(stage.slots), stage.mesh.to_string(), stage.zero,
                       stage.recompute.empty() ? "" : ", recompute: " + layers_text(stage.recompute));
  if (!sharding.empty()) out += "sharding:\n";
  std::set<std::string> written;  // a pattern that stands again never matches
  for (const auto& [pattern, spec] : sharding)
    if (written.insert(pattern).second) out += fmt::format("  {}: \"{}\"\n", yaml_quoted(pattern), spec.to_string());
  written.clear();
  if (!strategies.empty()) out += "strategies:\n";
  for (const auto& [pattern, strategy] : strategies)
    if (written.insert(pattern).second) out += fmt::format("  {}: {}\n", yaml_quoted(pattern), yaml_quoted(strategy));
  written.clear();
  if (!stored.empty()) out += "stored:\n";
  for (const auto& [pattern, spec] : stored)
    if (written.insert(pattern).second) out += fmt::format("  {}: \"{}\"\n", yaml_quoted(pattern), spec.to_string());
  return out + kernels_text(kernels) + prediction_text(predicted);
}

}  // namespace altiplano
