// bench_prediction: how well plans are predicted on this machine. It measures the machine (`altiplano profile
// --cluster`), then trains one model under many plans, as a user does, in turns; beside each measured step stand the
// plan's estimate and its simulation, beside the predicted memory what the device allocated. A table in Markdown, which
// docs/fidelity.md holds.
//
//   bench_prediction [--model gpt6|gpt2|tiny] [--rounds N] [--steps N] [--cluster FILE]
//
// --cluster: a file measured before instead of measuring now.
#include <cmath>

#include "framework/simulate/plan_simulation.hpp"
#include "tests/bench/training_run.hpp"

namespace altiplano::bench {
namespace {

struct Row {
  std::string name;
  int ranks = 1;
  std::vector<std::string> overrides;
  double estimated = 0, simulated = 0;  ///< seconds
  double predicted_bytes = 0, allocated_bytes = 0;
  std::vector<double> rounds = {};
  double measured() const { return spread_of(rounds).median; }
};

Row row(const std::string& name, int data, int tensor, int pipeline, std::vector<std::string> more = {}) {
  more.insert(more.end(), {fmt::format("parallel.data_parallel_size={}", data),
                           fmt::format("parallel.tensor_parallel_size={}", tensor),
                           fmt::format("parallel.pipeline_parallel_size={}", pipeline), "device.threads=1"});
  return {name, data * tensor * pipeline, std::move(more)};
}

/// On ranks 1 to 4, in both schedules, types and ways of keeping activations.
std::vector<Row> rows_for(const BenchModel& model) {
  const auto micro = [&](int64_t parts) {
    return fmt::format("train.micro_batch_size={}", std::max<int64_t>(1, model.batch / parts));
  };
  const std::string recompute = "parallel.recompute=full", gpipe = "parallel.schedule=gpipe",
                    bf16 = "train.precision=bf16";
  return {row("one rank", 1, 1, 1),
          row("data 2", 2, 1, 1),
          row("data 2, no ZeRO", 2, 1, 1, {"parallel.zero_stage=0"}),
          row("data 2, recomputing", 2, 1, 1, {recompute}),
          row("tensor 2", 1, 2, 1),
          row("tensor 2, recomputing", 1, 2, 1, {recompute}),
          row("pipeline 2, 1f1b of 4", 1, 1, 2, {micro(4)}),
          row("pipeline 2, gpipe of 4", 1, 1, 2, {micro(4), gpipe}),
          row("pipeline 2, 1f1b of 12", 1, 1, 2, {micro(12)}),
          row("data 3", 3, 1, 1),
          row("pipeline 3, gpipe of 4", 1, 1, 3, {micro(4), gpipe}),
          row("data 4", 4, 1, 1),
          row("data 2 x tensor 2", 2, 2, 1),
          row("data 2 x pipeline 2, 1f1b of 6", 2, 1, 2, {micro(12)}),
          row("tensor 2 x pipeline 2, gpipe of 4", 1, 2, 2, {micro(4), gpipe}),
          row("pipeline 4, 1f1b of 4", 1, 1, 4, {micro(4)}),
          row("data 2, bf16", 2, 1, 1, {bf16}),
          row("tensor 2, bf16", 1, 2, 1, {bf16}),
          row("pipeline 2, gpipe of 4, bf16", 1, 1, 2, {micro(4), gpipe, bf16})};
}

void predict(const BenchFolder& folder, const std::string& cluster, Row& r) {
  std::vector<std::string> overrides = r.overrides;
  overrides.push_back("cluster=" + cluster);
  JobRequest request;
  request.num_ranks = r.ranks;
  request.threads = 1;
  const Job job = require(prepare_job(load(folder, overrides), request));
  r.estimated = job.plan.predicted.step.value;
  r.simulated =
      require(simulate_plan(*job.graph, job.plan, job.cluster, job.timetable, job.device->lowering())).step.value;
}

void measure(const BenchFolder& folder, int steps, Row& r) {
  std::string settings;
  for (const std::string& text : r.overrides) settings += " --set " + text;
  const TrainingRun run = run_training(folder, r.ranks, 1, steps, settings);
  r.rounds.push_back(run.step_seconds);
  r.predicted_bytes = run.predicted_arenas;
  r.allocated_bytes = run.arenas;
}

struct Ranking {
  int pairs = 0, agreeing = 0, disagreeing = 0;
  int clear = 0, wrong = 0;  ///< pairs whose measured times differ by more than a tenth, and those predicted otherwise
  double tau() const { return pairs > 0 ? static_cast<double>(agreeing - disagreeing) / pairs : 1; }
};

Ranking ranking_of(const std::vector<Row>& rows, double Row::*predicted) {
  Ranking ranking;
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = i + 1; j < rows.size(); ++j) {
      const double measured = rows[i].measured() - rows[j].measured();
      const double guessed = rows[i].*predicted - rows[j].*predicted;
      ++ranking.pairs;
      ++(measured * guessed > 0 ? ranking.agreeing : ranking.disagreeing);
      if (std::abs(measured) <= 0.1 * std::min(rows[i].measured(), rows[j].measured())) continue;
      ++ranking.clear;
      ranking.wrong += measured * guessed > 0 ? 0 : 1;
    }
  return ranking;
}

double error_of(double predicted, const Row& r) {
  return predicted / r.measured() - 1;
}

void print_summary(const char* name, const std::vector<Row>& rows, double Row::*predicted) {
  double sum = 0;
  const Row* worst = &rows[0];
  for (const Row& r : rows) {
    sum += std::abs(error_of(r.*predicted, r));
    if (std::abs(error_of(r.*predicted, r)) > std::abs(error_of(worst->*predicted, *worst))) worst = &r;
  }
  const Ranking ranking = ranking_of(rows, predicted);
  print_out(
      "{}: mean error {:.1f} %, worst {:+.1f} % ({}); Kendall's tau {:.2f}; of {} pairs that differ by more than 10 % "
      "{} are ranked wrongly.\n\n",
      name, 100 * sum / static_cast<double>(rows.size()), 100 * error_of(worst->*predicted, *worst), worst->name,
      ranking.tau(), ranking.clear, ranking.wrong);
}

void print_table(const std::vector<Row>& rows) {
  print_out(
      "| plan | ranks | measured step, ms (quartiles) | estimate, ms | error | simulation, ms | error | memory | "
      "of it predicted |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const Row& r : rows)
    print_out("| {} | {} | {} | {:.1f} | {:+.1f} % | {:.1f} | {:+.1f} % | {:.1f} MiB | {:.2f} % |\n", r.name, r.ranks,
              to_string(spread_of(r.rounds), 1e3, 1), r.estimated * 1e3, 100 * error_of(r.estimated, r),
              r.simulated * 1e3, 100 * error_of(r.simulated, r), r.allocated_bytes / (1 << 20),
              100 * r.predicted_bytes / r.allocated_bytes);
  print_out("\n");
}

/// The cluster file: given, or measured among four ranks.
std::string cluster_file(const BenchFolder& folder, const std::string& given) {
  if (!given.empty()) return given;
  lines_of(fmt::format("{} profile -n 4 -c {} --set device.threads=1 --cluster {}", ALTIPLANO_BENCH_PROGRAM,
                       folder / "job.yaml", folder / "machine.yaml"));
  return folder / "machine.yaml";
}

int run(int argc, char** argv) {
  const std::string name = argument(argc, argv, "model", "gpt6");
  const int rounds = std::stoi(argument(argc, argv, "rounds", "3")),
            steps = std::stoi(argument(argc, argv, "steps", "6"));
  const BenchModel model = bench_model(name);
  const BenchFolder folder;
  // What is measured here is of this run alone.
  setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  folder.write("job.yaml", job_text(model, "fp32", 1, folder));
  write_data(folder);
  const std::string cluster = cluster_file(folder, argument(argc, argv, "cluster", ""));
  std::vector<Row> rows = rows_for(model);
  for (Row& r : rows) predict(folder, cluster, r);
  for (int round = 0; round < rounds; ++round)
    for (Row& r : rows) measure(folder, steps, r);
  std::ifstream file(cluster);
  const Cluster measured = require(Cluster::from_yaml(std::string(std::istreambuf_iterator<char>(file), {}), cluster));
  print_out("{}: {} layers of {}, sequences of {}, {} a step. Figures: {}.\n\n", name, model.layers, model.hidden,
            model.sequence, model.batch, measured.device.source);
  print_table(rows);
  print_summary("Estimate", rows, &Row::estimated);
  print_summary("Simulation", rows, &Row::simulated);
  return 0;
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  return altiplano::bench::run(argc, argv);
}
