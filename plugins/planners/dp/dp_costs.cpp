#include "plugins/planners/dp/dp_costs.hpp"

#include <algorithm>
#include <numeric>

#include "framework/cost/collective_cost.hpp"
#include "framework/search/cluster_prices.hpp"
#include "framework/search/plan_question.hpp"
#include "framework/solve/solve.hpp"

namespace altiplano {

namespace {

/// Tensor axis fastest: the devices of the first stage.
std::vector<int> first_devices(const MeshShape& mesh) {
  std::vector<int> devices(static_cast<size_t>(mesh.num_devices()));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

/// Prices of a byte, in units of the least time by its bytes; the first is 0. And what a stash counts for while bytes
/// are priced.
constexpr double kPrices[] = {0, 0.03, 0.3, 3, 30};
constexpr double kInFlight = 2;

double bytes_of(const LayerShares& shares) {
  return std::accumulate(shares.persistent.begin(), shares.persistent.end(), 1.0) +
         kInFlight * std::accumulate(shares.stash.begin(), shares.stash.end(), 0.0);
}

/// One sharding per price in kPrices.
Result<std::vector<LayerShares>> shares_at(const PlanRequest& request, const GraphFacts& facts, const MeshShape& mesh,
                                           int64_t size) {
  ShardingQuestion question;
  question.training = request.graph;
  question.facts = &facts;
  question.meshes = {mesh};
  question.mesh_of_layer.assign(request.graph->graph.layers().size(), 0);
  question.layer_class = classes_of_layers(facts.layer_signatures, question.mesh_of_layer);
  question.block_batch = size * mesh.degree(Axis::kData);
  question.microbatch_weight =
      static_cast<double>(std::max<int64_t>(1, request.global_batch / mesh.degree(Axis::kData) / size));
  question.zero = request.zero;
  const std::vector<MeshShape> meshes = {mesh};
  const Cluster cluster = request.cluster->resized(std::max(request.num_ranks, mesh.num_devices()));
  const ShardingPrices prices = cluster_prices(cluster, meshes, {first_devices(mesh)});
  ALTIPLANO_ASSIGN(const ShardingProblem problem, ShardingProblem::build(question, prices));
  SolveOptions options;
  options.back_end = SolveBackEnd::kOwn;
  std::vector<LayerShares> out;
  double time_per_byte = 0;
  for (double price : kPrices) {
    const Solution solution = solve(problem.with_priced_bytes(price * time_per_byte, kInFlight), options);
    if (solution.choices.empty())
      return infeasible("the search for a sharding on {} ended {}", mesh.to_string(), to_string(solution.kind));
    out.push_back(problem.shares(solution.choices));
    options.start = solution.choices;
    if (time_per_byte == 0) time_per_byte = solution.cost / bytes_of(out.back());
  }
  return out;
}

std::vector<double> prefix_sums(const std::vector<double>& values) {
  std::vector<double> sums = {0};
  for (double value : values) sums.push_back(sums.back() + value);
  return sums;
}

double between(const std::vector<double>& sums, int first, int end) {
  return sums[static_cast<size_t>(end)] - sums[static_cast<size_t>(first)];
}

}  // namespace

LayerCosts::Sums LayerCosts::sums_of(const LayerShares& shares) {
  return {prefix_sums(shares.microbatch), prefix_sums(shares.step), prefix_sums(shares.persistent),
          prefix_sums(shares.stash), shares.work};
}

Result<std::vector<LayerCosts>> LayerCosts::frontier(const PlanRequest& request, const GraphFacts& facts,
                                                     const MeshShape& mesh, int64_t small, int64_t large) {
  ALTIPLANO_ASSIGN(const auto at_small, shares_at(request, facts, mesh, small));
  std::vector<LayerShares> at_large = at_small;
  if (large != small) {
    ALTIPLANO_ASSIGN(at_large, shares_at(request, facts, mesh, large));
  }
  std::vector<LayerCosts> frontier;
  double least = 0;
  for (size_t p = 0; p < at_small.size(); ++p) {
    const double bytes = bytes_of(at_small[p]) + bytes_of(at_large[p]);
    if (p > 0 && bytes >= 0.999 * least) continue;
    least = bytes;
    LayerCosts costs;
    costs.small_ = small;
    costs.large_ = large;
    costs.at_[0] = sums_of(at_small[p]);
    costs.at_[1] = sums_of(at_large[p]);
    frontier.push_back(std::move(costs));
  }
  return frontier;
}

double LayerCosts::line(double at_small, double at_large, int64_t size) const {
  if (small_ == large_) return at_small;
  const double part = static_cast<double>(size - small_) / static_cast<double>(large_ - small_);
  return at_small + (at_large - at_small) * part;
}

double LayerCosts::microbatch_seconds(int first, int end, int64_t size) const {
  return line(between(at_[0].microbatch, first, end), between(at_[1].microbatch, first, end), size);
}

double LayerCosts::step_seconds(int first, int end) const {
  return std::min(between(at_[0].step, first, end), between(at_[1].step, first, end));
}

double LayerCosts::bytes(int first, int end, int64_t size, int in_flight) const {
  auto at = [&](const Sums& sums) {
    return between(sums.persistent, first, end) + in_flight * between(sums.stash, first, end) + sums.work;
  };
  return line(at(at_[0]), at(at_[1]), size);
}

std::vector<double> bytes_across_cuts(const TrainingGraph& training, const GraphFacts& facts) {
  const Graph& graph = training.graph;
  std::vector<size_t> last_layer(graph.values().size(), 0);
  for (const Op& op : graph.ops())
    if (op.phase == Phase::kForward)
      for (ValueId id : op.inputs) last_layer[id.index()] = std::max(last_layer[id.index()], op.layer.index());
  std::vector<double> bytes(graph.layers().size(), 0);
  for (const Value& value : graph.values()) {
    const int batch = facts.batch_dim[value.id.index()];
    if (batch < 0 || !value.producer.is_valid() || graph.op(value.producer).phase != Phase::kForward) continue;
    const double samples = static_cast<double>(value.shape[static_cast<size_t>(batch)]);
    const double of_sample = static_cast<double>(num_elements(value.shape) * size_of(value.dtype)) / samples;
    for (size_t l = graph.op(value.producer).layer.index() + 1; l <= last_layer[value.id.index()]; ++l)
      bytes[l] += of_sample;
  }
  return bytes;
}

std::vector<double> cut_seconds(const PlanRequest& request, const std::vector<double>& bytes_per_sample,
                                const MeshShape& mesh, int64_t size) {
  const int stage = mesh.num_devices();
  const Cluster cluster = request.cluster->resized(std::max(request.num_ranks, 2 * stage));
  std::vector<double> seconds;
  for (double bytes : bytes_per_sample) {
    const double part = bytes * static_cast<double>(size) / mesh.degree(Axis::kTensor);
    seconds.push_back(part > 0 ? 2 * transfer_cost(Bytes(static_cast<int64_t>(part)), cluster, 0, stage).value : 0);
  }
  return seconds;
}

}  // namespace altiplano
