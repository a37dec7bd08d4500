// The Plan's text form: YAML that people read and that parses back.
#include <yaml-cpp/yaml.h>

#include "framework/base/text.hpp"
#include "framework/plan/plan.hpp"

namespace altiplano {

namespace {

/// "block.7" -> ("block.", 7); nothing when it does not end in a number.
std::optional<std::pair<std::string, int64_t>> numbered(const std::string& layer) {
  size_t at = layer.find_last_not_of("0123456789");
  if (at == std::string::npos || at + 1 == layer.size()) return std::nullopt;
  auto number = parse_int(layer.substr(at + 1));
  if (!number) return std::nullopt;
  return std::pair(layer.substr(0, at + 1), *number);
}

/// Runs of consecutive numbers become "block.0-5".
std::string layers_text(const std::vector<std::string>& layers) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < layers.size();) {
    auto first = numbered(layers[i]);
    size_t end = i + 1;
    while (first && end < layers.size()) {
      auto next = numbered(layers[end]);
      if (!next || next->first != first->first || next->second != first->second + static_cast<int64_t>(end - i)) break;
      ++end;
    }
    parts.push_back(end - i > 1 ? fmt::format("{}-{}", layers[i], first->second + static_cast<int64_t>(end - i) - 1)
                                : layers[i]);
    i = end;
  }
  return "[" + join(parts, ", ") + "]";
}

std::vector<std::string> expand_layers(const std::string& text) {
  size_t dash = text.rfind('-');
  if (dash == std::string::npos) return {text};
  auto first = numbered(text.substr(0, dash));
  auto last = parse_int(text.substr(dash + 1));
  if (!first || !last || *last < first->second || *last - first->second > 100'000) return {text};
  std::vector<std::string> layers;
  for (int64_t i = first->second; i <= *last; ++i) layers.push_back(first->first + std::to_string(i));
  return layers;
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

/// Reads one YAML document with messages that name file, line, column and key.
class PlanReader {
 public:
  explicit PlanReader(const std::string& file) : file_(file) {}

  Result<Plan> read(const YAML::Node& root) {
    if (!root.IsMap()) return fail(root, "", "expected a map");
    Plan plan;
    ALTIPLANO_ASSIGN(int64_t version, integer(root, "altiplano_plan"));
    if (version != Plan::kFormatVersion)
      return fail(root["altiplano_plan"], "altiplano_plan",
                  fmt::format("format {}, this version reads {}", version, Plan::kFormatVersion));
    ALTIPLANO_RETURN_IF_ERROR(known_keys(root, "",
                                         {"altiplano_plan", "graph", "cluster", "batch", "schedule", "precision",
                                          "sequence_parallel", "stages", "sharding", "predicted", "planner"}));
    ALTIPLANO_RETURN_IF_ERROR(read_head(root, plan));
    ALTIPLANO_RETURN_IF_ERROR(read_stages(root["stages"], plan));
    ALTIPLANO_RETURN_IF_ERROR(read_sharding(root["sharding"], plan));
    ALTIPLANO_RETURN_IF_ERROR(read_prediction(root["predicted"], plan));
    return plan;
  }

 private:
  Status read_head(const YAML::Node& root, Plan& plan) {
    ALTIPLANO_ASSIGN(plan.model_name, text(root["graph"], "model", "graph."));
    ALTIPLANO_ASSIGN(plan.graph_fingerprint, hex(root["graph"], "fingerprint", "graph."));
    ALTIPLANO_ASSIGN(plan.cluster_shape, text(root["cluster"], "shape", "cluster."));
    ALTIPLANO_ASSIGN(plan.cluster_fingerprint, hex(root["cluster"], "fingerprint", "cluster."));
    ALTIPLANO_ASSIGN(plan.global_batch, integer(root["batch"], "global", "batch."));
    ALTIPLANO_ASSIGN(plan.microbatch, integer(root["batch"], "microbatch", "batch."));
    ALTIPLANO_ASSIGN(int64_t microbatches, integer(root["batch"], "microbatches", "batch."));
    plan.num_microbatches = static_cast<int>(microbatches);
    ALTIPLANO_ASSIGN(plan.schedule, text(root["schedule"], "kind", "schedule."));
    ALTIPLANO_ASSIGN(int64_t chunks, integer(root["schedule"], "chunks", "schedule."));
    plan.chunks = static_cast<int>(chunks);
    ALTIPLANO_ASSIGN(std::string dtype, text(root["precision"], "compute", "precision."));
    auto parsed = dtype_from_string(dtype);
    if (!parsed)
      return fail(root["precision"]["compute"], "precision.compute",
                  fmt::format("'{}' is no floating type; valid: f32, bf16, f64", dtype));
    plan.compute_dtype = *parsed;
    ALTIPLANO_ASSIGN(std::string sequence, text(root, "sequence_parallel", ""));
    if (sequence != "true" && sequence != "false")
      return fail(root["sequence_parallel"], "sequence_parallel", "expected true or false");
    plan.sequence_parallel = sequence == "true";
    ALTIPLANO_ASSIGN(plan.planner, text(root, "planner", ""));
    return Status::ok();
  }

  Status read_stages(const YAML::Node& node, Plan& plan) {
    if (!node || !node.IsSequence()) return fail(node, "stages", "expected a list of stages");
    for (const auto& item : node) {
      PlanStage stage;
      ALTIPLANO_ASSIGN(stage.name, text(item, "name", "stages."));
      if (!item["layers"] || !item["layers"].IsSequence())
        return fail(item, "stages.layers", "expected a list of layers");
      for (const auto& layer : item["layers"])
        for (std::string& name : expand_layers(layer.Scalar())) stage.layers.push_back(std::move(name));
      ALTIPLANO_ASSIGN(std::string slots, text(item, "slots", "stages."));
      ALTIPLANO_RETURN_IF_ERROR(read_slots(item["slots"], slots, stage));
      if (!item["mesh"] || !item["mesh"].IsMap()) return fail(item, "stages.mesh", "expected a map axis: degree");
      for (const auto& entry : item["mesh"]) {
        auto axis = axis_from_string(entry.first.Scalar());
        auto degree = entry.second.IsScalar() ? parse_int(entry.second.Scalar()) : std::nullopt;
        if (!axis || !degree)
          return fail(entry.first, "stages.mesh", fmt::format("'{}' is no axis with a degree", entry.first.Scalar()));
        stage.mesh.axes.emplace_back(*axis, static_cast<int>(*degree));
      }
      ALTIPLANO_ASSIGN(int64_t zero, integer(item, "zero", "stages."));
      stage.zero = static_cast<int>(zero);
      plan.stages.push_back(std::move(stage));
    }
    return Status::ok();
  }

  Status read_slots(const YAML::Node& node, const std::string& slots, PlanStage& stage) {
    for (const std::string& part : split(slots, ',')) {
      auto ends = split(part, '-');
      auto first = parse_int(trim(ends[0]));
      auto last = parse_int(trim(ends.back()));
      if (!first || !last || ends.size() > 2 || *last < *first || *last > 1'000'000)
        return fail(node, "stages.slots", fmt::format("'{}' is no list like 0-3,6", slots));
      for (int64_t slot = *first; slot <= *last; ++slot) stage.slots.emplace_back(slot);
    }
    return Status::ok();
  }

  Status read_sharding(const YAML::Node& node, Plan& plan) {
    if (!node) return Status::ok();
    if (!node.IsMap()) return fail(node, "sharding", "expected a map name: spec");
    for (const auto& entry : node) {
      auto spec = entry.second.IsScalar() ? ShardingSpec::parse(entry.second.Scalar())
                                          : Result<ShardingSpec>(invalid_argument("expected a text"));
      if (!spec.is_ok()) return fail(entry.second, "sharding." + entry.first.Scalar(), spec.status().message());
      plan.sharding.emplace_back(entry.first.Scalar(), *spec);
    }
    return Status::ok();
  }

  Status read_prediction(const YAML::Node& node, Plan& plan) {
    if (!node) return Status::ok();
    ALTIPLANO_ASSIGN(plan.predicted.step.value, number(node, "step_seconds", "predicted."));
    ALTIPLANO_ASSIGN(plan.predicted.tokens_per_second, number(node, "tokens_per_second", "predicted."));
    ALTIPLANO_ASSIGN(plan.predicted.bubble, number(node, "bubble", "predicted."));
    if (!node["peak_memory_bytes"] || !node["peak_memory_bytes"].IsSequence())
      return fail(node, "predicted.peak_memory_bytes", "expected a list of bytes, one per stage");
    for (const auto& item : node["peak_memory_bytes"]) {
      auto bytes = parse_int(item.Scalar());
      if (!bytes) return fail(item, "predicted.peak_memory_bytes", "expected an integer");
      plan.predicted.peak_memory.emplace_back(*bytes);
    }
    return Status::ok();
  }

  Status known_keys(const YAML::Node& node, const std::string& prefix, const std::vector<std::string>& keys) {
    for (const auto& entry : node) {
      std::string key = entry.first.Scalar();
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      auto suggestion = did_you_mean(key, keys);
      return fail(entry.first, prefix + key,
                  "unknown key" + (suggestion ? "; did you mean " + *suggestion + "?" : std::string()));
    }
    return Status::ok();
  }

  Result<std::string> text(const YAML::Node& node, const std::string& key, const std::string& prefix) {
    if (!node || !node.IsMap() || !node[key] || !node[key].IsScalar()) return fail(node, prefix + key, "missing");
    return node[key].Scalar();
  }
  Result<int64_t> integer(const YAML::Node& node, const std::string& key, const std::string& prefix = "") {
    ALTIPLANO_ASSIGN(std::string value, text(node, key, prefix));
    auto parsed = parse_int(value);
    if (!parsed) return fail(node[key], prefix + key, fmt::format("got '{}', expected an integer", value));
    return *parsed;
  }
  Result<double> number(const YAML::Node& node, const std::string& key, const std::string& prefix) {
    ALTIPLANO_ASSIGN(std::string value, text(node, key, prefix));
    auto parsed = parse_double(value);
    if (!parsed) return fail(node[key], prefix + key, fmt::format("got '{}', expected a number", value));
    return *parsed;
  }
  Result<uint64_t> hex(const YAML::Node& node, const std::string& key, const std::string& prefix) {
    ALTIPLANO_ASSIGN(std::string value, text(node, key, prefix));
    char* end = nullptr;
    uint64_t parsed = std::strtoull(value.c_str(), &end, 16);
    if (value.empty() || *end != '\0')
      return fail(node[key], prefix + key, fmt::format("got '{}', expected a hexadecimal number", value));
    return parsed;
  }
  Status fail(const YAML::Node& node, const std::string& key, const std::string& what) const {
    if (!node.IsDefined()) return invalid_argument("{}: {}: {}", file_, key, what);
    return invalid_argument("{}:{}:{}: {}: {}", file_, node.Mark().line + 1, node.Mark().column + 1, key, what);
  }
  std::string file_;
};

}  // namespace

std::string Plan::to_yaml() const {
  std::string out = fmt::format("altiplano_plan: {}\n", kFormatVersion);
  out += fmt::format("graph: {{model: {}, fingerprint: {:016x}}}\n", model_name, graph_fingerprint);
  out += fmt::format("cluster: {{shape: \"{}\", fingerprint: {:016x}}}\n", cluster_shape, cluster_fingerprint);
  out += fmt::format("batch: {{global: {}, microbatch: {}, microbatches: {}, replicas: {}}}\n", global_batch,
                     microbatch, num_microbatches, data_degree());
  out += fmt::format("schedule: {{kind: {}, chunks: {}}}\n", schedule, chunks);
  out += fmt::format("precision: {{compute: {}}}\n", to_string(compute_dtype));
  out += fmt::format("sequence_parallel: {}\nplanner: {}\nstages:\n", sequence_parallel, planner);
  for (const PlanStage& stage : stages)
    out += fmt::format("  - {{name: {}, layers: {}, slots: \"{}\", mesh: {}, zero: {}}}\n", stage.name,
                       layers_text(stage.layers), slots_text(stage.slots), stage.mesh.to_string(), stage.zero);
  if (!sharding.empty()) out += "sharding:\n";
  for (const auto& [pattern, spec] : sharding) out += fmt::format("  \"{}\": \"{}\"\n", pattern, spec.to_string());
  if (predicted.peak_memory.empty()) return out;
  std::vector<std::string> peaks;
  for (Bytes peak : predicted.peak_memory) peaks.push_back(std::to_string(peak.value));
  out += fmt::format(
      "predicted: {{step_seconds: {:.6g}, tokens_per_second: {:.6g}, bubble: {:.4g}, peak_memory_bytes: [{}]}}\n",
      predicted.step.value, predicted.tokens_per_second, predicted.bubble, join(peaks, ", "));
  return out;
}

Result<Plan> Plan::from_yaml(const std::string& text, const std::string& file_name) {
  try {
    return PlanReader(file_name).read(YAML::Load(text));
  } catch (const YAML::Exception& e) {
    return invalid_argument("{}:{}:{}: {}", file_name, e.mark.line + 1, e.mark.column + 1, e.msg);
  }
}

}  // namespace altiplano
