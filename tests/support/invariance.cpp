#include "tests/support/invariance.hpp"

#include <cmath>
#include <cstring>
#include <memory>

#include "tests/support/plans.hpp"

namespace altiplano::test {

GptShape invariance_shape(bool tied, bool packed) {
  GptShape shape;
  shape.layers = 8, shape.hidden = 48, shape.heads = 24, shape.vocabulary = 257, shape.batch = 24, shape.sequence = 6,
  shape.dropout = 0.1;
  shape.tied = tied;
  shape.packed = packed;
  return shape;
}

std::string PlanCase::to_string() const {
  std::string text = fmt::format("data {} tensor {} pipeline {}, microbatch {}, {}, zero {}, {}, {}, {}{}",
                                 degrees.data, degrees.tensor, degrees.pipeline, microbatch, schedule, zero,
                                 sequence_parallel ? "sequence parallel" : "sequence whole", tied ? "tied" : "untied",
                                 optimizer, packed ? ", packed" : "");
  if (fused) text += ", fused";
  if (recompute) text += ", recompute";
  for (int64_t count : split) text += fmt::format(" {}", count);
  return text;
}

const TrainingGraph& graph_of(const PlanCase& c, DType dtype) {
  static std::map<std::string, std::unique_ptr<TrainingGraph>> graphs;
  auto& graph =
      graphs[fmt::format("{} {} {} {} {} {}", c.tied, c.optimizer, to_string(dtype), c.packed, c.fused, c.recompute)];
  if (!graph) {
    OptimizerOptions optimizer;
    optimizer.name = c.optimizer;
    optimizer.momentum = 0.9;
    graph = std::make_unique<TrainingGraph>(
        make_gpt_training(invariance_shape(c.tied, c.packed), dtype, optimizer, 7, c.fused, c.recompute));
  }
  return *graph;
}

Plan plan_of(const PlanCase& c, const TrainingGraph& graph) {
  DegreePlanOptions options;
  options.degrees = c.degrees;
  options.microbatch = c.microbatch;
  options.schedule = c.schedule;
  options.zero = c.zero;
  options.sequence_parallel = c.sequence_parallel;
  options.split = c.split;
  return make_plan(graph, options);
}

Plan one_rank_plan(const TrainingGraph& graph) {
  DegreePlanOptions options;
  options.microbatch = graph.graph.value(graph.inputs[0]).shape[0];
  return make_plan(graph, options);
}

const TrainResult& one_rank_run(const PlanCase& c, DType dtype, const TrainOptions& options) {
  static std::map<std::string, TrainResult> runs;
  PlanCase single = c;
  single.recompute = false;
  single.fused = c.fused && options.device != "reference";  // which knows best what ops mean one by one
  std::string key = fmt::format("{} {} {} {} {} {} {} {} {}", c.tied, c.optimizer, to_string(dtype), c.packed,
                                single.fused, options.device, options.steps, options.validate, options.learning_rate);
  auto it = runs.find(key);
  if (it != runs.end()) return it->second;
  TrainOptions plain;
  plain.device = options.device, plain.steps = options.steps, plain.validate = options.validate;
  plain.learning_rate = options.learning_rate, plain.clip = options.clip;
  const TrainingGraph& graph = graph_of(single, dtype);
  return runs.emplace(key, train(graph, one_rank_plan(graph), plain)).first->second;
}

std::vector<Degrees> degrees_of_all_ranks() {
  std::vector<Degrees> all;
  for (int ranks : {1, 2, 3, 4, 6, 8})
    for (int data = 1; data <= ranks; ++data)
      for (int tensor = 1; tensor <= ranks; ++tensor)
        if (ranks % (data * tensor) == 0) all.push_back({data, tensor, ranks / (data * tensor)});
  return all;
}

namespace {

double norm_difference(const TrainResult& run, const TrainResult& one, bool relative) {
  if (!relative) return largest_difference(run.norms, one.norms);
  if (run.norms.size() != one.norms.size()) return HUGE_VAL;
  double largest = 0;
  for (size_t i = 0; i < one.norms.size(); ++i) {
    double off = std::abs(run.norms[i] - one.norms[i]) / one.norms[i];
    if (!(off <= largest)) largest = off;
  }
  return largest;
}

}  // namespace

std::string difference(const TrainResult& run, const TrainResult& one, const Tolerance& tolerance) {
  std::string text;
  auto hold = [&](const char* what, double off, double limit) {
    if (!(off <= limit)) text += fmt::format(" {} off by {:.3g}, allowed {:.3g};", what, off, limit);
  };
  hold("loss", largest_difference(run.losses, one.losses), tolerance.loss);
  hold("gradient norm", norm_difference(run, one, tolerance.relative_norm), tolerance.norm);
  hold("tensors", largest_difference(run.tensors, one.tensors), tolerance.tensors);
  hold("initial weights", largest_difference(run.initial, one.initial), 0);
  hold("validation loss", std::abs(run.validation_loss - one.validation_loss), tolerance.loss);
  if (!run.replicas_differ.empty()) text += fmt::format(" ranks do not agree on {};", run.replicas_differ);
  for (size_t rank = 0; rank < run.peak_bytes.size(); ++rank)
    if (run.peak_bytes[rank] != run.predicted_bytes[rank])
      text += fmt::format(" rank {} peaks at {} bytes, predicted {};", rank, run.peak_bytes[rank],
                          run.predicted_bytes[rank]);
  return text;
}

TrainResult check_invariant(const PlanCase& c, const TrainOptions& options, DType dtype, const Tolerance& tolerance) {
  const TrainingGraph& graph = graph_of(c, dtype);
  const TrainResult& one = one_rank_run(c, dtype, options);
  TrainResult run = train(graph, plan_of(c, graph), options);
  std::string off = difference(run, one, tolerance);
  BOOST_CHECK_MESSAGE(off.empty(), c.to_string() << ":" << off);
  return run;
}

bool is_bit_identical(const TrainResult& a, const TrainResult& b) {
  auto same = [](const std::vector<double>& x, const std::vector<double>& y) {
    return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0);
  };
  if (!same(a.losses, b.losses) || !same(a.norms, b.norms) || a.tensors.size() != b.tensors.size()) return false;
  for (const auto& [name, values] : a.tensors) {
    auto it = b.tensors.find(name);
    if (it == b.tensors.end() || !same(values, it->second)) return false;
  }
  return true;
}

}  // namespace altiplano::test
