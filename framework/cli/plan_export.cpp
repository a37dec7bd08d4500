#include "framework/cli/plan_export.hpp"

#include <algorithm>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/plan/layer_names.hpp"
#include "framework/sharding/tensor_parallel.hpp"

namespace altiplano {

namespace {

Status inexpressible(const std::string& what) {
  return invalid_argument("--export megatron: {}", what);
}

/// The transformer blocks among a stage's layers: those that are numbered.
std::vector<std::string> blocks_of(const std::vector<std::string>& layers) {
  std::vector<std::string> blocks;
  for (const std::string& layer : layers)
    if (numbered_layer(layer)) blocks.push_back(layer);
  return blocks;
}

class MegatronFlags {
 public:
  explicit MegatronFlags(const Job& job) : job_(job), options_(job.config.options), plan_(job.plan) {}

  Result<std::string> run() {
    ALTIPLANO_RETURN_IF_ERROR(check());
    model();
    flag("micro-batch-size", plan_.microbatch);
    flag("global-batch-size", plan_.global_batch);
    if (plan_.compute_dtype == DType::kBF16) flag("bf16");
    flag("tensor-model-parallel-size", tensor());
    flag("pipeline-model-parallel-size", static_cast<int64_t>(plan_.stages.size()));
    ALTIPLANO_RETURN_IF_ERROR(split());
    if (plan_.sequence_parallel) flag("sequence-parallel");
    zero();
    ALTIPLANO_RETURN_IF_ERROR(recompute());
    return text_;
  }

 private:
  int64_t tensor() const { return plan_.stages[0].mesh.degree(Axis::kTensor); }
  void flag(const std::string& name) { text_ += "--" + name + "\n"; }
  template <typename Value>
  void flag(const std::string& name, const Value& value) {
    text_ += fmt::format("--{} {}\n", name, value);
  }

  Status check() const {
    if (const std::string kind = options_.get_string("model.kind"); kind != "gpt")
      return inexpressible(fmt::format("model.kind {}: only gpt has flags there", kind));
    if (plan_.compute_dtype != DType::kBF16 && plan_.compute_dtype != DType::kF32)
      return inexpressible(fmt::format("precision {}: it trains in fp32 or bf16", to_string(plan_.compute_dtype)));
    if (plan_.schedule != "1f1b" && plan_.stages.size() > 1)
      return inexpressible(fmt::format("schedule {}: it has 1f1b and its interleaved form", plan_.schedule));
    for (const PlanStage& stage : plan_.stages)
      if (stage.mesh != plan_.stages[0].mesh || stage.zero != plan_.stages[0].zero)
        return inexpressible(fmt::format("stage {} has other degrees or another ZeRO stage than s0", stage.name));
    return check_sharding();
  }

  /// Parameters must lie as its column- and row-parallel layers have them.
  Status check_sharding() const {
    if (!plan_.strategies.empty() || !plan_.stored.empty())
      return inexpressible("the plan states how ops run (`strategies`, `stored`), which no flag does");
    const Graph& graph = job_.graph->graph;
    ALTIPLANO_ASSIGN(const auto rules, rules_of(graph));
    ALTIPLANO_ASSIGN(const auto specs, tensor_parallel_specs(graph, rules, static_cast<int>(tensor())));
    for (const Parameter& p : graph.parameters()) {
      const Value& value = graph.value(p.value);
      const MeshShape& mesh = plan_.stages[0].mesh;
      const ShardingSpec whole = ShardingSpec::replicated(value.shape.size());
      const auto found = specs.find(p.value);
      const ShardingSpec rule = normalized(found == specs.end() ? whole : found->second, mesh);
      const ShardingSpec* planned = plan_.find_spec(value.name);
      const ShardingSpec spec = normalized(planned ? *planned : whole, mesh);
      if (!(spec == rule))
        return inexpressible(
            fmt::format("{} lies as {} in the plan, as {} there", value.name, spec.to_string(), rule.to_string()));
    }
    return Status::ok();
  }

  void model() {
    const int64_t hidden = options_.get_int("model.hidden_size");
    flag("num-layers", options_.get_int("model.num_hidden_layers"));
    flag("hidden-size", hidden);
    flag("ffn-hidden-size",
         options_.has("model.intermediate_size") ? options_.get_int("model.intermediate_size") : 4 * hidden);
    flag("num-attention-heads", options_.get_int("model.num_attention_heads"));
    flag("max-position-embeddings", options_.get_int("model.max_position_embeddings"));
    flag("seq-length", options_.get_int("train.seq_length"));
    if (!options_.get_bool("model.tie_word_embeddings")) flag("untie-embeddings-and-output-weights");
  }

  Status split() {
    std::vector<int64_t> counts;
    for (const PlanStage& stage : plan_.stages) counts.push_back(static_cast<int64_t>(blocks_of(stage.layers).size()));
    if (std::ranges::all_of(counts, [&](int64_t n) { return n == counts[0]; })) return Status::ok();
    for (size_t s = 2; s + 1 < counts.size(); ++s)
      if (counts[s] != counts[1])
        return inexpressible(
            fmt::format("stages 1 and {} have {} and {} blocks; it splits all but the first and last "
                        "evenly",
                        s, counts[1], counts[s]));
    flag("decoder-first-pipeline-num-layers", counts.front());
    flag("decoder-last-pipeline-num-layers", counts.back());
    return Status::ok();
  }

  void zero() {
    const int stage = plan_.data_degree() > 1 ? plan_.stages[0].zero : 0;
    if (stage == 1) flag("use-distributed-optimizer");
    if (stage < 2) return;
    flag("use-megatron-fsdp");
    flag("data-parallel-sharding-strategy", stage == 2 ? "optim_grads" : "optim_grads_params");
  }

  Status recompute() {
    const size_t count = blocks_of(plan_.stages[0].recompute).size();
    for (const PlanStage& stage : plan_.stages) {
      const std::vector<std::string> all = blocks_of(stage.layers), again = blocks_of(stage.recompute);
      const bool are_first = again.size() <= all.size() && std::equal(again.begin(), again.end(), all.begin());
      if (!are_first || again.size() != count)
        return inexpressible(
            fmt::format("stage {} recomputes {} of its {} blocks, s0 {}; it recomputes equally many, "
                        "the first ones, on every stage",
                        stage.name, again.size(), all.size(), count));
    }
    if (count == 0) return Status::ok();
    flag("recompute-granularity", "full");
    flag("recompute-method", "block");
    flag("recompute-num-layers", count);
    return Status::ok();
  }

  const Job& job_;
  const Options& options_;
  const Plan& plan_;
  std::string text_;
};

}  // namespace

Result<std::string> export_megatron(const Job& job) {
  return MegatronFlags(job).run();
}

}  // namespace altiplano
