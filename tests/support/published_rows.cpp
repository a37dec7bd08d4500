#include "tests/support/published_rows.hpp"

#include <fstream>

#include "framework/base/text.hpp"
#include "framework/graph/recompute.hpp"
#include "framework/plan/degrees.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/program/lowering.hpp"
#include "framework/sharding/dims.hpp"
#include "framework/sharding/tensor_parallel.hpp"

namespace altiplano::test {

namespace {

constexpr size_t kNumColumns = 11;  ///< without the label

Result<PublishedRow> row_of(const std::string& line) {
  std::vector<std::string> words = split(line, ',');
  std::string label;
  if (words.size() == kNumColumns + 1) {
    label = words.front();
    words.erase(words.begin());
  }
  if (words.size() != kNumColumns)
    return invalid_argument("\"{}\": {} columns; expected {}", line, words.size(), kNumColumns);
  std::vector<double> n;
  for (const std::string& word : words) n.push_back(std::atof(word.c_str()));
  const auto whole = [&](size_t i) { return static_cast<int64_t>(n[i]); };
  const auto degree = [&](size_t i) { return static_cast<int>(n[i]); };
  PublishedRow row{degree(0), whole(1),  whole(2),  whole(3),  whole(4),     whole(5),
                   whole(6),  degree(7), degree(8), degree(9), n[10] / 1000, label};
  if (row.tensor * row.data * row.pipeline != row.gpus)
    return invalid_argument("\"{}\": the degrees do not make {} GPUs", line, row.gpus);
  return row;
}

}  // namespace

std::string PublishedRow::settings() const {
  return fmt::format("h {}, {} layers, {} GPUs, batch {}: mbs {}, tensor {}, data {}, pipeline {}", hidden, layers,
                     gpus, batch, microbatch, tensor, data, pipeline);
}

Result<std::vector<PublishedRow>> read_published_rows(const std::string& file) {
  std::ifstream in(file);
  if (!in) return invalid_argument("{}: cannot be read", file);
  std::vector<PublishedRow> rows;
  bool is_head = true;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (std::exchange(is_head, false)) continue;
    ALTIPLANO_ASSIGN(rows.emplace_back(), row_of(line));
  }
  return rows;
}

int64_t padded_vocabulary(int64_t vocabulary, int tensor) {
  constexpr int64_t kMultiple = 128;
  if (tensor == 1) return vocabulary;
  const int64_t multiple = kMultiple * tensor;
  return (vocabulary + multiple - 1) / multiple * multiple;
}

Result<const TrainingGraph*> PublishedSimulator::graph(const PublishedRow& row) {
  const int64_t vocabulary = padded_vocabulary(style_.vocabulary, row.tensor);
  auto& graph = graphs_[{row.layers, row.hidden, row.heads, row.sequence, row.batch, vocabulary}];
  if (graph) return graph.get();
  ALTIPLANO_ASSIGN(const Model* model, PluginRegistry::instance().model("gpt"));
  Options options(model->option_records());
  const std::pair<const char*, int64_t> numbers[] = {{"num_hidden_layers", row.layers},
                                                     {"hidden_size", row.hidden},
                                                     {"num_attention_heads", row.heads},
                                                     {"max_position_embeddings", row.sequence},
                                                     {"vocab_size", vocabulary}};
  for (const auto& [key, number] : numbers) ALTIPLANO_RETURN_IF_ERROR(options.set(key, number, {}));
  ALTIPLANO_ASSIGN(ModelGraph written, model->build(options, {row.batch, row.sequence, false, false}));
  std::set<std::string> recomputed;
  if (!style_.recompute.empty()) {
    ALTIPLANO_ASSIGN(recomputed,
                     layers_to_recompute(written.graph, {style_.recompute.begin(), style_.recompute.end()}));
  }
  ALTIPLANO_ASSIGN(TrainingGraph training,
                   make_training_graph(std::move(written), DType::kBF16, {}, 1,
                                       {"bias_gelu", "residual_add", "packed_attention"}, recomputed));
  graph = std::make_unique<TrainingGraph>(std::move(training));
  return graph.get();
}

Result<LoweredRow> PublishedSimulator::lowered(const PublishedRow& row) {
  ALTIPLANO_ASSIGN(const TrainingGraph* graph, this->graph(row));
  DegreePlanOptions options;
  options.degrees = {row.data, row.tensor, row.pipeline};
  options.microbatch = row.microbatch;
  options.zero = style_.zero;
  options.sequence_parallel = style_.sequence_parallel;
  if (row.pipeline > 1) options.split.assign(static_cast<size_t>(row.pipeline), row.layers / row.pipeline);
  Cluster any;  // plan_from_degrees only notes it
  any.device = {"any", Bytes(1), 1, {{DType::kF32, 1}}, 1, 0, "any"};
  any.levels = {{"node", row.gpus, 0, 1, 1}};
  ALTIPLANO_ASSIGN(Plan plan, plan_from_degrees(*graph, any, options));
  ALTIPLANO_ASSIGN(const auto rules, rules_of(graph->graph));
  ALTIPLANO_ASSIGN(const auto specs, tensor_parallel_specs(graph->graph, rules, row.tensor));
  for (const auto& [id, spec] : specs) plan.sharding.emplace_back(graph->graph.value(id).name, spec);
  state_recompute(*graph, plan);
  ALTIPLANO_RETURN_IF_ERROR(verify_plan(plan, *graph));
  ALTIPLANO_ASSIGN(const Schedule* schedule, PluginRegistry::instance().schedule(plan.schedule));
  ScheduleRequest request;
  request.num_stages = row.pipeline;
  request.num_microbatches = plan.num_microbatches;
  ALTIPLANO_ASSIGN(const Timetable timetable, schedule->build(request));
  LoweringOptions lowering;
  lowering.only_first_of_stage = true;
  LoweredRow lowered;
  ALTIPLANO_ASSIGN(lowered.programs, lower(*graph, plan, timetable, Binding::identity(row.gpus), lowering));
  for (const PlanStage& stage : plan.stages) {
    lowered.alike.emplace_back();
    for (SlotId slot : stage.slots) lowered.alike.back().emplace_back(slot.value);
  }
  return lowered;
}

Result<ProgramSimulation> simulate_row(const PublishedRow& row, const LoweredRow& lowered, const Cluster& cluster) {
  return simulate_programs(lowered.programs, lowered.alike, cluster.resized(row.gpus));
}

}  // namespace altiplano::test
