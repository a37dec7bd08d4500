// Reads the Plan's text form, strictly: unknown keys, keys given twice and values out of bounds are refused with
// file:line:column and key, and the places of what is read are kept for verify_plan.
#include <algorithm>
#include <cmath>

#include "framework/base/text.hpp"
#include "framework/options/yaml_document.hpp"
#include "framework/plan/layer_names.hpp"
#include "framework/plan/plan.hpp"

namespace altiplano {
namespace {

using Kind = YamlNode::Kind;
using Keys = std::vector<std::string>;
constexpr int64_t kMostSlots = 1'000'000;
constexpr int64_t kMostSamples = int64_t{1} << 40;

class PlanReader {
 public:
  explicit PlanReader(const std::string& file) { plan_.file = file; }

  Result<Plan> read(const YamlNode& root) {
    ALTIPLANO_RETURN_IF_ERROR(
        check_map(root, "",
                  {"altiplano_plan", "graph", "cluster", "batch", "schedule", "precision", "sequence_parallel",
                   "stages", "sharding", "strategies", "stored", "kernels", "predicted", "planner"}));
    ALTIPLANO_ASSIGN(const int64_t version, integer(root, "", "altiplano_plan", 0, 1'000'000));
    if (version != Plan::kFormatVersion)
      return fail("altiplano_plan", fmt::format("format {}, this version reads {}", version, Plan::kFormatVersion));
    ALTIPLANO_RETURN_IF_ERROR(read_head(root));
    ALTIPLANO_RETURN_IF_ERROR(read_batch(root));
    ALTIPLANO_RETURN_IF_ERROR(read_stages(root));
    ALTIPLANO_RETURN_IF_ERROR(check_replicas());
    ALTIPLANO_RETURN_IF_ERROR(read_specs(root, "sharding", plan_.sharding));
    ALTIPLANO_RETURN_IF_ERROR(read_strategies(root));
    ALTIPLANO_RETURN_IF_ERROR(read_specs(root, "stored", plan_.stored));
    ALTIPLANO_RETURN_IF_ERROR(read_kernels(root));
    ALTIPLANO_RETURN_IF_ERROR(read_prediction(root));
    return std::move(plan_);
  }

 private:
  Status read_head(const YamlNode& root) {
    ALTIPLANO_ASSIGN(const YamlNode* graph, map(root, "graph", {"model", "fingerprint"}));
    ALTIPLANO_ASSIGN(plan_.model_name, text(*graph, "graph.", "model"));
    ALTIPLANO_ASSIGN(plan_.graph_fingerprint, hex(*graph, "graph.", "fingerprint"));
    ALTIPLANO_ASSIGN(const YamlNode* cluster, map(root, "cluster", {"shape", "fingerprint", "figures"}));
    ALTIPLANO_ASSIGN(plan_.cluster_shape, text(*cluster, "cluster.", "shape"));
    ALTIPLANO_ASSIGN(plan_.cluster_fingerprint, hex(*cluster, "cluster.", "fingerprint"));
    if (find(*cluster, "figures") != nullptr) {
      ALTIPLANO_ASSIGN(plan_.cluster_figures, text(*cluster, "cluster.", "figures"));
    }
    ALTIPLANO_ASSIGN(const YamlNode* schedule, map(root, "schedule", {"kind", "chunks"}));
    ALTIPLANO_ASSIGN(plan_.schedule, text(*schedule, "schedule.", "kind"));
    ALTIPLANO_ASSIGN(const int64_t chunks, integer(*schedule, "schedule.", "chunks", 1, 1024));
    plan_.chunks = static_cast<int>(chunks);
    ALTIPLANO_ASSIGN(const YamlNode* precision, map(root, "precision", {"compute"}));
    ALTIPLANO_ASSIGN(const std::string dtype, text(*precision, "precision.", "compute"));
    auto parsed = dtype_from_string(dtype);
    if (!parsed)
      return fail("precision.compute", fmt::format("'{}' is no floating type; valid: f32, bf16, f64", dtype));
    plan_.compute_dtype = *parsed;
    ALTIPLANO_ASSIGN(const std::string sequence, text(root, "", "sequence_parallel"));
    if (sequence != "true" && sequence != "false") return fail("sequence_parallel", "expected true or false");
    plan_.sequence_parallel = sequence == "true";
    ALTIPLANO_ASSIGN(plan_.planner, text(root, "", "planner"));
    return Status::ok();
  }

  Status read_batch(const YamlNode& root) {
    ALTIPLANO_ASSIGN(const YamlNode* batch, map(root, "batch", {"global", "microbatch", "microbatches", "replicas"}));
    ALTIPLANO_ASSIGN(plan_.global_batch, integer(*batch, "batch.", "global", 1, kMostSamples));
    ALTIPLANO_ASSIGN(plan_.microbatch, integer(*batch, "batch.", "microbatch", 1, kMostSamples));
    ALTIPLANO_ASSIGN(const int64_t microbatches, integer(*batch, "batch.", "microbatches", 1, Plan::kMostMicrobatches));
    plan_.num_microbatches = static_cast<int>(microbatches);
    if (find(*batch, "replicas") == nullptr) return Status::ok();
    ALTIPLANO_ASSIGN(replicas_, integer(*batch, "batch.", "replicas", 1, kMostSlots));
    return Status::ok();
  }

  Status check_replicas() {
    if (replicas_ == 0 || replicas_ == plan_.data_degree()) return Status::ok();
    return fail("batch.replicas", fmt::format("{}, but stage {} has data degree {}; make them equal", replicas_,
                                              plan_.stages[0].name, plan_.data_degree()));
  }

  Status read_stages(const YamlNode& root) {
    ALTIPLANO_ASSIGN(const YamlNode* list, value(root, "", "stages", Kind::kList, "a list of stages"));
    if (list->items.empty()) return fail("stages", "expected a list of stages, got an empty one");
    for (const auto& item : list->items) ALTIPLANO_RETURN_IF_ERROR(read_stage(*item));
    return Status::ok();
  }

  Status read_stage(const YamlNode& node) {
    const std::string key = fmt::format("stages[{}]", plan_.stages.size()), prefix = key + ".";
    plan_.places[key] = {node.line, node.column};
    ALTIPLANO_RETURN_IF_ERROR(check_map(node, prefix, {"name", "layers", "slots", "mesh", "zero", "recompute"}));
    PlanStage stage;
    ALTIPLANO_ASSIGN(stage.name, text(node, prefix, "name"));
    ALTIPLANO_RETURN_IF_ERROR(read_layers(node, prefix, "layers", stage.layers));
    if (find(node, "recompute") != nullptr)
      ALTIPLANO_RETURN_IF_ERROR(read_layers(node, prefix, "recompute", stage.recompute));
    ALTIPLANO_RETURN_IF_ERROR(read_slots(node, prefix, stage));
    ALTIPLANO_RETURN_IF_ERROR(read_mesh(node, prefix, stage));
    ALTIPLANO_ASSIGN(const int64_t zero, integer(node, prefix, "zero", 0, Plan::kMostZero));
    stage.zero = static_cast<int>(zero);
    plan_.stages.push_back(std::move(stage));
    return Status::ok();
  }

  Status read_layers(const YamlNode& node, const std::string& prefix, const char* key,
                     std::vector<std::string>& layers) {
    ALTIPLANO_ASSIGN(const YamlNode* list, value(node, prefix, key, Kind::kList, "a list of layers"));
    for (const auto& item : list->items) {
      if (item->kind != Kind::kScalar)
        return fail_at(*item, prefix + key, "expected names of layers such as block.0-5");
      for (std::string& name : expand_layers(item->scalar)) {
        plan_.places[fmt::format("{}{}[{}]", prefix, key, layers.size())] = {item->line, item->column};
        layers.push_back(std::move(name));
      }
    }
    return Status::ok();
  }

  Status read_slots(const YamlNode& node, const std::string& prefix, PlanStage& stage) {
    ALTIPLANO_ASSIGN(const std::string slots, text(node, prefix, "slots"));
    for (const std::string& part : split(slots, ',')) {
      auto ends = split(part, '-');
      auto first = parse_int(trim(ends[0]));
      auto last = parse_int(trim(ends.back()));
      if (!first || !last || ends.size() > 2 || *first < 0 || *last < *first || *last > kMostSlots)
        return fail(prefix + "slots", fmt::format("'{}' is no list like 0-3,6", slots));
      for (int64_t slot = *first; slot <= *last; ++slot) stage.slots.emplace_back(slot);
      if (static_cast<int64_t>(stage.slots.size()) > kMostSlots)
        return fail(prefix + "slots", fmt::format("more than {} slots", kMostSlots));
    }
    return Status::ok();
  }

  Status read_mesh(const YamlNode& node, const std::string& prefix, PlanStage& stage) {
    ALTIPLANO_ASSIGN(const YamlNode* mesh, value(node, prefix, "mesh", Kind::kMap, "a map axis: degree"));
    int64_t devices = 1;
    for (const auto& entry : mesh->entries) {
      auto axis = axis_from_string(entry.key);
      auto degree = entry.value->kind == Kind::kScalar ? parse_int(entry.value->scalar) : std::nullopt;
      if (!axis)
        return fail_at(entry, prefix + "mesh",
                       fmt::format("'{}' is no axis; expected one of {}", entry.key, axis_names()));
      if (!degree)
        return fail_at(entry, prefix + "mesh",
                       fmt::format("axis {} needs a degree, an integer of at least 1", entry.key));
      if (*degree < 1 || (devices *= *degree) > kMostSlots)
        return fail_at(entry, prefix + "mesh",
                       fmt::format("degree {} of axis {}: expected at least 1, and at most {} "
                                   "devices in all",
                                   *degree, entry.key, kMostSlots));
      stage.mesh.axes.emplace_back(*axis, static_cast<int>(*degree));
    }
    return Status::ok();
  }

  /// A map from patterns; `read` takes one entry and its key.
  template <typename Read>
  Status read_patterns(const YamlNode& root, const std::string& section, const std::string& what, Read read) {
    if (find(root, section) == nullptr) return Status::ok();
    ALTIPLANO_ASSIGN(const YamlNode* node, value(root, "", section, Kind::kMap, "a map " + what));
    for (const auto& entry : node->entries) {
      const std::string key = section + "." + entry.key;
      if (plan_.places.contains(key)) return fail_at(entry, key, "given twice");
      plan_.places[key] = {entry.line, entry.column};
      ALTIPLANO_RETURN_IF_ERROR(read(entry, key));
    }
    return Status::ok();
  }

  Status read_specs(const YamlNode& root, const std::string& section,
                    std::vector<std::pair<std::string, ShardingSpec>>& specs) {
    return read_patterns(root, section, "name: spec", [&](const YamlEntry& entry, const std::string& key) {
      auto spec = entry.value->kind == Kind::kScalar ? ShardingSpec::parse(entry.value->scalar)
                                                     : Result<ShardingSpec>(invalid_argument("expected a text"));
      if (!spec.is_ok()) return fail_at(*entry.value, key, spec.status().message());
      specs.emplace_back(entry.key, *spec);
      return Status::ok();
    });
  }

  Status read_strategies(const YamlNode& root) {
    return read_patterns(root, "strategies", "name: strategy", [&](const YamlEntry& entry, const std::string& key) {
      if (entry.value->kind != Kind::kScalar || entry.value->scalar.empty())
        return fail_at(*entry.value, key, "expected a text like \"data:b tensor:f\"");
      plan_.strategies.emplace_back(entry.key, entry.value->scalar);
      return Status::ok();
    });
  }

  Status read_kernels(const YamlNode& root) {
    if (find(root, "kernels") == nullptr) return Status::ok();
    ALTIPLANO_ASSIGN(const YamlNode* node, map(root, "kernels", {"machine", "forms"}));
    ALTIPLANO_ASSIGN(plan_.kernels.machine, text(*node, "kernels.", "machine"));
    ALTIPLANO_ASSIGN(const YamlNode* forms, value(*node, "kernels.", "forms", Kind::kMap, "a map shape: form"));
    for (const auto& entry : forms->entries) {
      const std::string key = "kernels.forms." + entry.key;
      if (plan_.places.contains(key)) return fail_at(entry, key, "given twice");
      plan_.places[key] = {entry.line, entry.column};
      if (entry.value->kind != Kind::kScalar || entry.value->scalar.empty())
        return fail_at(*entry.value, key, "expected the name of a form");
      plan_.kernels.forms[entry.key] = entry.value->scalar;
    }
    return Status::ok();
  }

  Status read_prediction(const YamlNode& root) {
    if (find(root, "predicted") == nullptr) return Status::ok();
    const std::string prefix = "predicted.";
    ALTIPLANO_ASSIGN(const YamlNode* node,
                     map(root, "predicted", {"step_seconds", "tokens_per_second", "bubble", "peak_memory_bytes"}));
    ALTIPLANO_ASSIGN(plan_.predicted.step.value, number(*node, prefix, "step_seconds"));
    ALTIPLANO_ASSIGN(plan_.predicted.tokens_per_second, number(*node, prefix, "tokens_per_second"));
    ALTIPLANO_ASSIGN(plan_.predicted.bubble, number(*node, prefix, "bubble"));
    ALTIPLANO_ASSIGN(const YamlNode* peaks,
                     value(*node, prefix, "peak_memory_bytes", Kind::kList, "a list of bytes, one per stage"));
    for (const auto& item : peaks->items) {
      auto bytes = item->kind == Kind::kScalar ? parse_int(item->scalar) : std::nullopt;
      if (!bytes) return fail_at(*item, prefix + "peak_memory_bytes", "expected an integer");
      plan_.predicted.peak_memory.emplace_back(*bytes);
    }
    return Status::ok();
  }

  static const YamlEntry* find(const YamlNode& map, const std::string& key) {
    auto at = std::ranges::find(map.entries, key, &YamlEntry::key);
    return at == map.entries.end() ? nullptr : &*at;
  }

  /// A map with these keys, each at most once; their places are kept.
  Status check_map(const YamlNode& node, const std::string& prefix, const Keys& known) {
    const std::string name = prefix.empty() ? "the plan" : prefix.substr(0, prefix.size() - 1);
    if (node.kind != Kind::kMap) return fail_at(node, name, "expected a map with keys among " + join(known, ", "));
    for (const auto& entry : node.entries) {
      const std::string key = prefix + entry.key;
      if (auto [first, fresh] = plan_.places.emplace(key, std::pair(entry.line, entry.column)); !fresh)
        return fail_at(entry, key, fmt::format("given twice, first in line {}", first->second.first));
      if (std::ranges::find(known, entry.key) == known.end()) {
        auto near = did_you_mean(entry.key, known);
        return fail_at(
            entry, key,
            near ? fmt::format("unknown key; did you mean {}?", *near) : "unknown key; known: " + join(known, ", "));
      }
      if (entry.value->kind != Kind::kEmpty) plan_.places[key] = {entry.value->line, entry.value->column};
    }
    map_places_[prefix] = {node.line, node.column};
    return Status::ok();
  }

  Result<const YamlNode*> value(const YamlNode& map, const std::string& prefix, const std::string& key, Kind kind,
                                const std::string& expected) {
    const YamlEntry* entry = find(map, key);
    if (entry == nullptr) {
      if (map_places_.contains(prefix)) plan_.places.emplace(prefix + key, map_places_[prefix]);
      return fail(prefix + key, "missing, expected " + expected);
    }
    if (entry->value->kind != kind) return fail(prefix + key, "expected " + expected);
    return entry->value.get();
  }

  Result<const YamlNode*> map(const YamlNode& root, const std::string& key, const Keys& keys) {
    ALTIPLANO_ASSIGN(const YamlNode* node, value(root, "", key, Kind::kMap, "a map of " + join(keys, ", ")));
    ALTIPLANO_RETURN_IF_ERROR(check_map(*node, key + ".", keys));
    return node;
  }

  Result<std::string> text(const YamlNode& map, const std::string& prefix, const std::string& key) {
    ALTIPLANO_ASSIGN(const YamlNode* node, value(map, prefix, key, Kind::kScalar, "a text"));
    if (node->scalar.empty()) return fail(prefix + key, "an empty text");
    return node->scalar;
  }

  Result<int64_t> integer(const YamlNode& map, const std::string& prefix, const std::string& key, int64_t low,
                          int64_t high) {
    const std::string expected = fmt::format("an integer in [{}, {}]", low, high);
    ALTIPLANO_ASSIGN(const YamlNode* node, value(map, prefix, key, Kind::kScalar, expected));
    auto parsed = parse_int(node->scalar);
    if (parsed && *parsed >= low && *parsed <= high) return *parsed;
    return fail(prefix + key, fmt::format("got {}, expected {}", node->scalar, expected));
  }

  Result<double> number(const YamlNode& map, const std::string& prefix, const std::string& key) {
    ALTIPLANO_ASSIGN(const YamlNode* node, value(map, prefix, key, Kind::kScalar, "a number"));
    auto parsed = parse_double(node->scalar);
    if (parsed && std::isfinite(*parsed)) return *parsed;
    return fail(prefix + key, fmt::format("got {}, expected a number", node->scalar));
  }

  Result<uint64_t> hex(const YamlNode& map, const std::string& prefix, const std::string& key) {
    ALTIPLANO_ASSIGN(const std::string digits, text(map, prefix, key));
    if (digits.size() > 16 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      return fail(prefix + key, fmt::format("got {}, expected up to 16 hexadecimal digits", digits));
    return std::stoull(digits, nullptr, 16);
  }

  Status fail(const std::string& key, const std::string& what) const {
    return invalid_argument("{}{}", plan_.where(key), what);
  }
  template <typename Node>
  Status fail_at(const Node& node, const std::string& key, const std::string& what) const {
    return invalid_argument("{}:{}:{}: {}: {}", plan_.file, std::max(1, node.line), std::max(1, node.column), key,
                            what);
  }

  Plan plan_;
  int64_t replicas_ = 0;
  std::map<std::string, std::pair<int, int>> map_places_;
};

}  // namespace

Result<Plan> Plan::from_yaml(const std::string& text, const std::string& file_name) {
  const YamlDocument document = parse_yaml(text);
  if (!document.problems.empty()) {
    const YamlProblem& problem = document.problems.front();
    return invalid_argument("{}:{}:{}: {}", file_name, problem.line, problem.column, problem.text);
  }
  return PlanReader(file_name).read(*document.root);
}

}  // namespace altiplano
