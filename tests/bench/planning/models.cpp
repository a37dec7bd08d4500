#include "tests/bench/planning/models.hpp"

#include <array>

#include "tests/bench/training_run.hpp"

namespace altiplano::bench {

namespace {

struct PublishedModel {
  std::string name;
  int64_t layers, hidden, heads, sequence, batch;
  int devices;
  std::string cluster;
  int kinds = 1;  ///< of layers
};

/// Biases that are not trained, so that every layer is like those `kinds` before it only; at most 16 kinds.
std::string frozen(const PublishedModel& m) {
  constexpr std::array kBiases = {"ln1", "ln2", "attention.qkv", "attention.out"};
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < m.layers; ++layer)
    for (size_t b = 0; b < kBiases.size(); ++b)
      if (layer % m.kinds >> b & 1) names.push_back(fmt::format("\"block.{}.{}.bias\"", layer, kBiases[b]));
  return join(names, ", ");
}

std::string job_of(const PublishedModel& m, const BenchFolder& folder) {
  return fmt::format(
      "run: {{dir: {0}}}\n"
      "model: {{kind: gpt, num_hidden_layers: {1}, hidden_size: {2}, num_attention_heads: {3}, "
      "max_position_embeddings: {4}, vocab_size: 51200, tie_word_embeddings: true, frozen: [{7}]}}\n"
      "train: {{max_steps: 1, global_batch_size: {5}, seq_length: {4}, precision: bf16}}\n"
      "parallel: {{planner: dp}}\n"
      "cluster: {6}\n",
      folder / "run", m.layers, m.hidden, m.heads, m.sequence, m.batch, m.cluster, frozen(m));
}

struct Timed {
  double seconds = 0;
  std::vector<std::string> lines;
};
/// One core, nothing cached.
Timed timed_command(const BenchFolder& folder, const std::string& arguments) {
  std::filesystem::remove_all(folder / "cache");
  const double begin = now();
  Timed timed;
  timed.lines = lines_of(fmt::format("XDG_CACHE_HOME={} OMP_NUM_THREADS=1 taskset -c 0 {} {}", folder / "cache",
                                     ALTIPLANO_BENCH_PROGRAM, arguments));
  timed.seconds = now() - begin;
  return timed;
}

/// The line that says it, without its name; empty where none does.
std::string said(const std::vector<std::string>& lines, const std::string& start) {
  for (const std::string& line : lines)
    if (line.starts_with(start)) return line.substr(start.size(), line.size() - start.size() - 1);
  return {};
}

double seconds_to_plan(const BenchFolder& folder, const PublishedModel& model) {
  folder.write("job.yaml", job_of(model, folder));
  return timed_command(folder,
                       fmt::format("plan -n {} -c {} -o {}", model.devices, folder / "job.yaml", folder / "plan.yaml"))
      .seconds;
}

void print_model(const BenchFolder& folder, const PublishedModel& model) {
  const double seconds = seconds_to_plan(folder, model);
  const auto shown = timed_command(
      folder, fmt::format("estimate -n {} -c {} --plan {}", model.devices, folder / "job.yaml", folder / "plan.yaml"));
  print_out("{:<10} {:>5} devices of {:<12} {:>8.2f} s\n    {}\n    step {}\n", model.name, model.devices,
            model.cluster, seconds, said(shown.lines, "plan      "), said(shown.lines, "step      "));
}

}  // namespace

void print_models() {
  const BenchFolder folder;
  print_out("planning, one core, nothing cached: `altiplano plan` from job file to proved plan\n");
  for (const PublishedModel& model : {PublishedModel{"GPT-2.6B", 32, 2560, 32, 1024, 1024, 8, "p3.16xlarge"},
                                      PublishedModel{"GPT-39B", 48, 8192, 64, 1024, 1024, 64, "p3.16xlarge"},
                                      PublishedModel{"GPT-1T", 128, 25600, 160, 2048, 3072, 3072, "dgx-a100-80"}})
    print_model(folder, model);
  const PublishedModel wide{"GPT-39B", 48, 8192, 64, 1024, 8192, 1024, "dgx-a100-80"};
  folder.write("job.yaml", job_of(wide, folder));
  const auto simulated = timed_command(
      folder, fmt::format("simulate -n 1024 -c {} --set parallel.planner=manual --set parallel.tensor_parallel_size=8 "
                          "--set parallel.pipeline_parallel_size=8 --set train.micro_batch_size=1",
                          folder / "job.yaml"));
  print_out("simulating a step of {} on 1,024 devices, 512 microbatches (`altiplano simulate`): {:.2f} s\n    {}\n",
            wide.name, simulated.seconds, said(simulated.lines, "step      "));
}

void print_depths() {
  const BenchFolder folder;
  print_out("planning by depth and by kinds of layers: GPT of hidden size 1024 on 16 devices of dgx-a100-80\n");
  for (int64_t layers : {12, 24, 48, 96, 192})
    print_out("{:>5} layers of  1 kind  {:>8.2f} s\n", layers,
              seconds_to_plan(folder, {"", layers, 1024, 16, 1024, 512, 16, "dgx-a100-80"}));
  for (int kinds : {2, 4, 8, 16})
    print_out("{:>5} layers of {:>2} kinds {:>8.2f} s\n", 48, kinds,
              seconds_to_plan(folder, {"", 48, 1024, 16, 1024, 512, 16, "dgx-a100-80", kinds}));
}

}  // namespace altiplano::bench
