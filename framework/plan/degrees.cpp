#include "framework/plan/degrees.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/graph/op_definition.hpp"

namespace altiplano {

namespace {

Status check_num_microbatches(int64_t global_batch, int64_t microbatch, int data) {
  const int64_t number = global_batch / microbatch / data;
  if (number <= Plan::kMostMicrobatches) return Status::ok();
  const int64_t least = (global_batch / data + Plan::kMostMicrobatches - 1) / Plan::kMostMicrobatches;
  return invalid_argument(
      "train.global_batch_size: {} is {} of micro_batch_size {} on each of {}, at most {} are "
      "possible; use a smaller batch, more replicas, or micro_batch_size {} or more",
      global_batch, counted(number, "microbatch", "microbatches"), microbatch, counted(data, "replica"),
      Plan::kMostMicrobatches, least);
}

}  // namespace

Status check_batch(int64_t global_batch, int64_t microbatch, int data) {
  int64_t unit = microbatch * data;
  if (unit < 1)
    return invalid_argument("micro_batch_size {} x data_parallel_size {}: both must be at least 1", microbatch, data);
  if (global_batch % unit == 0) return check_num_microbatches(global_batch, microbatch, data);
  int64_t below = global_batch / unit * unit, above = below + unit;
  return invalid_argument(
      "train.global_batch_size: {} is not a multiple of micro_batch_size {} x data_parallel_size {} = {}; nearest: {}",
      global_batch, microbatch, data, unit, below > 0 ? fmt::format("{}, {}", below, above) : fmt::format("{}", above));
}

std::vector<Flops> layer_flops(const Graph& graph) {
  std::vector<Flops> flops(graph.layers().size());
  for (const Op& op : graph.ops()) {
    if (op.phase == Phase::kUpdate) continue;
    const OpDefinition& definition = OpTable::instance().get(op.kind);
    std::vector<ValueType> inputs, outputs;
    for (ValueId id : op.inputs) inputs.push_back({graph.value(id).shape, graph.value(id).dtype});
    for (ValueId id : op.outputs) outputs.push_back({graph.value(id).shape, graph.value(id).dtype});
    double count = 0;
    if (definition.flops)
      count = definition.flops(inputs, outputs, op.attributes);
    else
      for (const ValueType& out : outputs) count += static_cast<double>(num_elements(out.shape));
    flops[op.layer.index()] += Flops(count);
  }
  return flops;
}

namespace {

/// The run of layers between first and last one of the most frequent signature.
std::pair<size_t, size_t> repeated_range(const Graph& graph) {
  auto signatures = layer_signatures(graph);
  std::map<uint64_t, size_t> count;
  for (uint64_t s : signatures) ++count[s];
  uint64_t most = signatures[0];
  for (uint64_t s : signatures)
    if (count[s] > count[most]) most = s;
  size_t first = 0, last = signatures.size() - 1;
  while (signatures[first] != most) ++first;
  while (signatures[last] != most) --last;
  return {first, last + 1};
}

/// Contiguous parts with the smallest possible largest cost; among those the last cut as early as possible (exact
/// dynamic program, n^2 p).
std::vector<int64_t> balanced_split(const std::vector<double>& costs, int parts) {
  size_t n = costs.size();
  std::vector<double> prefix(n + 1, 0.0);
  std::partial_sum(costs.begin(), costs.end(), prefix.begin() + 1);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(static_cast<size_t>(parts) + 1, std::vector<double>(n + 1, kInfinity));
  std::vector<std::vector<size_t>> cut(static_cast<size_t>(parts) + 1, std::vector<size_t>(n + 1, 0));
  best[0][0] = 0;
  for (size_t p = 1; p <= static_cast<size_t>(parts); ++p) {
    for (size_t end = p; end <= n; ++end) {
      for (size_t begin = p - 1; begin < end; ++begin) {
        double cost = std::max(best[p - 1][begin], prefix[end] - prefix[begin]);
        if (cost > best[p][end] * (1 + 1e-12)) continue;
        if (cost < best[p][end] * (1 - 1e-12) || best[p][end] == kInfinity) {
          best[p][end] = cost;
          cut[p][end] = begin;
        } else {
          cut[p][end] = begin;  // equal cost: earlier stages take more, the last fewer (it has the head)
        }
      }
    }
  }
  std::vector<int64_t> split;
  for (size_t p = static_cast<size_t>(parts), end = n; p > 0; --p) {
    split.insert(split.begin(), static_cast<int64_t>(end - cut[p][end]));
    end = cut[p][end];
  }
  return split;
}

std::vector<std::vector<std::string>> cut_layers(const std::vector<std::string>& layers,
                                                 const std::vector<int64_t>& split) {
  std::vector<std::vector<std::string>> stages;
  auto at = layers.begin();
  for (int64_t count : split) {
    stages.emplace_back(at, at + count);
    at += count;
  }
  return stages;
}

}  // namespace

Result<std::vector<std::vector<std::string>>> split_layers(const Graph& graph, int stages,
                                                           const std::vector<int64_t>& split) {
  auto all = static_cast<int64_t>(graph.layers().size());
  auto [first, last] = repeated_range(graph);
  auto repeated = static_cast<int64_t>(last - first);
  if (stages > all)
    return invalid_argument("parallel.pipeline_parallel_size: {} for {}; at most {}", counted(stages, "stage"),
                            counted(all, "layer"), all);
  std::vector<int64_t> counts = split;
  if (counts.empty()) {
    auto flops = layer_flops(graph);
    std::vector<double> costs;
    bool merges = stages <= repeated;  // the odd layers at the ends ride along
    for (size_t i = merges ? first : 0; i < (merges ? last : static_cast<size_t>(all)); ++i)
      costs.push_back(flops[i].value);
    for (size_t i = 0; merges && i < first; ++i) costs.front() += flops[i].value;
    for (size_t i = last; merges && i < static_cast<size_t>(all); ++i) costs.back() += flops[i].value;
    counts = balanced_split(costs, stages);
  }
  if (static_cast<int>(counts.size()) != stages)
    return invalid_argument("parallel.pipeline.split: {} for pipeline_parallel_size {}",
                            counted(static_cast<int64_t>(counts.size()), "entry", "entries"), stages);
  for (int64_t count : counts)
    if (count < 0) return invalid_argument("parallel.pipeline.split: {} is negative", count);
  int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (sum == repeated && sum != all) {
    counts.front() += static_cast<int64_t>(first);
    counts.back() += all - static_cast<int64_t>(last);
  } else if (sum != all) {
    return invalid_argument("parallel.pipeline.split: sum {} is neither the model's {} nor all its {}", sum,
                            counted(repeated, "repeated layer"), counted(all, "layer"));
  }
  for (int64_t count : counts)
    if (count == 0) return invalid_argument("parallel.pipeline.split: a stage would have no layers");
  return cut_layers(graph.layers(), counts);
}

Result<Plan> plan_from_degrees(const TrainingGraph& training, const Cluster& cluster,
                               const DegreePlanOptions& options) {
  const Degrees& degrees = options.degrees;
  Plan plan;
  plan.model_name = training.graph.name;
  plan.graph_fingerprint = training.fingerprint;
  plan.cluster_shape = cluster.shape_text();
  plan.cluster_fingerprint = cluster.fingerprint();
  plan.global_batch = training.graph.value(training.inputs[0]).shape[0];
  plan.microbatch = options.microbatch;
  ALTIPLANO_RETURN_IF_ERROR(check_batch(plan.global_batch, options.microbatch, degrees.data));
  plan.num_microbatches = static_cast<int>(plan.global_batch / options.microbatch / degrees.data);
  plan.schedule = options.schedule;
  plan.compute_dtype = training.compute_dtype;
  plan.sequence_parallel = options.sequence_parallel && degrees.tensor > 1;
  plan.planner = options.planner;
  ALTIPLANO_ASSIGN(auto layers, split_layers(training.graph, degrees.pipeline, options.split));
  for (int s = 0; s < degrees.pipeline; ++s) {
    PlanStage stage;
    stage.name = fmt::format("s{}", s);
    stage.layers = layers[static_cast<size_t>(s)];
    stage.mesh.axes = {{Axis::kData, degrees.data}, {Axis::kTensor, degrees.tensor}};
    stage.zero = degrees.data > 1 ? options.zero : 0;
    for (int i = 0; i < degrees.data * degrees.tensor; ++i)
      stage.slots.emplace_back(s * degrees.data * degrees.tensor + i);
    plan.stages.push_back(std::move(stage));
  }
  state_recompute(training, plan);
  return plan;
}

}  // namespace altiplano
