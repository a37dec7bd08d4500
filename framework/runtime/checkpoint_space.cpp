#include "framework/runtime/checkpoint_space.hpp"

#include <algorithm>
#include <filesystem>

#include "framework/base/plural.hpp"
#include "framework/checkpoint/layout.hpp"

namespace altiplano {

namespace {

/// Beyond the data: per box its headers and groups in the shard, its lines in the manifest and in the index (2.3 KiB
/// were measured); per checkpoint the files themselves.
constexpr int64_t kBytesPerBox = 3 << 10, kBytesPerCheckpoint = 32 << 10;

/// Into how many boxes a stage's ranks cut a tensor, at most: parameters, and what the optimizer keeps for them.
struct MostBoxes {
  int64_t of_parameter = 1, of_state = 1;
};

MostBoxes most_boxes(const Plan& plan) {
  const bool splits_over_data = std::ranges::any_of(
      plan.sharding, [](const auto& entry) { return entry.second.split_axes().contains(Axis::kData); });
  MostBoxes most;
  for (const PlanStage& stage : plan.stages) {
    const int64_t tensor = stage.mesh.degree(Axis::kTensor), all = tensor * stage.mesh.degree(Axis::kData);
    most.of_parameter = std::max(most.of_parameter, splits_over_data || stage.zero >= 3 ? all : tensor);
    most.of_state = std::max(most.of_state, splits_over_data || stage.zero > 0 ? all : tensor);
  }
  return most;
}

}  // namespace

Bytes checkpoint_bytes(const Job& job) {
  const Graph& graph = job.graph->graph;
  const MostBoxes boxes = most_boxes(job.plan);
  int64_t bytes = kBytesPerCheckpoint + static_cast<int64_t>(job.plan.to_yaml().size());
  auto add = [&](ValueId id, int64_t num_boxes) {
    const int64_t elements = num_elements(graph.value(id).shape);
    bytes += elements * size_of(graph.value(id).dtype) + std::min(num_boxes, elements) * kBytesPerBox;
  };
  for (const Parameter& p : graph.parameters()) add(p.value, boxes.of_parameter);
  for (const ParameterTraining& p : job.graph->parameters)
    for (ValueId state : p.states) add(state, boxes.of_state);
  return Bytes(bytes);
}

std::optional<Bytes> free_bytes_at(const std::string& path) {
  std::error_code error;
  std::filesystem::path existing = std::filesystem::absolute(path);
  while (!std::filesystem::exists(existing, error) && existing != existing.parent_path())
    existing = existing.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(existing, error);
  if (error || space.capacity == 0) return std::nullopt;
  return Bytes(static_cast<int64_t>(space.available));
}

KeepRule keep_rule(const Options& options) {
  return {options.get_int("checkpoint.keep_last"), options.get_int("checkpoint.keep_every")};
}

SpaceForecast forecast_space(const Job& job) {
  const Options& options = job.config.options;
  SpaceForecast forecast;
  forecast.directory = options.get_string("checkpoint.dir");
  forecast.each = checkpoint_bytes(job);
  forecast.free = free_bytes_at(forecast.directory);
  forecast.most = most_checkpoints(keep_rule(options), options.get_int("checkpoint.every_steps"),
                                   options.get_int("train.max_steps"));
  forecast.there = static_cast<int64_t>(list_step_folders(forecast.directory).size());
  return forecast;
}

Result<std::optional<std::string>> check_space(const SpaceForecast& forecast) {
  if (!forecast.free) return std::optional<std::string>();
  const Bytes free = *forecast.free;
  if (free < forecast.each)
    return invalid_argument(
        "checkpoint.dir: {}: one checkpoint takes {}, only {} are free there; free some space or use another "
        "checkpoint.dir",
        forecast.directory, to_string(forecast.each), to_string(free));
  const int64_t to_come = std::max<int64_t>(0, forecast.most - forecast.there);
  // Divided, not multiplied: the product may be larger than 64 bits.
  if (forecast.each.value == 0 || to_come <= free.value / forecast.each.value) return std::optional<std::string>();
  return std::optional<std::string>(
      fmt::format("checkpoint.dir: {}: {} of {} will lie there, but only {} are free, enough for {}; lower "
                  "checkpoint.keep_last or keep_every, or free some space",
                  forecast.directory, counted(to_come, "more checkpoint"), to_string(forecast.each), to_string(free),
                  free.value / forecast.each.value));
}

}  // namespace altiplano
