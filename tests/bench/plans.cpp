// bench_plans: one model divided over the same ranks in several ways, each trained as a user does, in turns, with the
// step that was predicted beside it. Predictions come from the cluster's figures (`cluster` of the job file), which
// know another processor: what can be compared is how much longer one plan takes than another.
//
//   bench_plans [--model gpt6|gpt2|tiny] [--precision fp32|bf16] [--ranks N] [--rounds N] [--steps N]
#include "tests/bench/training_run.hpp"

namespace altiplano::bench {
namespace {

struct Division {
  std::string name, settings;
  double predicted = 0, peak_bytes = 0;
  std::vector<double> rounds = {};
};

std::string degrees(int data, int tensor, int pipeline) {
  return fmt::format(
      "--set parallel.data_parallel_size={} --set parallel.tensor_parallel_size={} --set "
      "parallel.pipeline_parallel_size={}",
      data, tensor, pipeline);
}

/// Seconds, from the plan that the settings give.
double predicted_step(const BenchFolder& folder, int ranks, const std::string& settings) {
  const auto lines = lines_of(fmt::format("{} plan -n {} -c {} {} -o {}", ALTIPLANO_BENCH_PROGRAM, ranks,
                                          folder / "job.yaml", settings, folder / "plan.yaml"));
  std::ifstream file(folder / "plan.yaml");
  return require(Plan::from_yaml(std::string(std::istreambuf_iterator<char>(file), {}), "plan.yaml"))
      .predicted.step.value;
}

int run(int argc, char** argv) {
  const std::string name = argument(argc, argv, "model", "gpt6"), precision = argument(argc, argv, "precision", "fp32");
  const int ranks = std::stoi(argument(argc, argv, "ranks", "2"));
  const int rounds = std::stoi(argument(argc, argv, "rounds", "3")),
            steps = std::stoi(argument(argc, argv, "steps", "6"));
  const BenchModel model = bench_model(name);
  const BenchFolder folder;
  folder.write("job.yaml", job_text(model, precision, ranks, folder));
  write_data(folder);
  const std::string quarters = fmt::format(" --set train.micro_batch_size={}", std::max<int64_t>(1, model.batch / 4));
  std::vector<Division> divisions = {
      {fmt::format("data {}", ranks), degrees(ranks, 1, 1)},
      {fmt::format("data {}, recomputing", ranks), degrees(ranks, 1, 1) + " --set parallel.recompute=full"},
      {fmt::format("tensor {}", ranks), degrees(1, ranks, 1)},
      {fmt::format("pipeline {}, four microbatches", ranks), degrees(1, 1, ranks) + quarters}};
  for (Division& d : divisions) d.predicted = predicted_step(folder, ranks, d.settings);
  for (int round = 0; round < rounds; ++round)
    for (Division& d : divisions) {
      const TrainingRun run = run_training(folder, ranks, 1, steps, d.settings);
      d.rounds.push_back(run.step_seconds);
      d.peak_bytes = run.peak_bytes;
    }
  print_out("{}, {}, {} ranks of 1 thread\n\n{:<32} {:>24} {:>22} {:>14} {:>16} {:>9}\n", name, precision, ranks,
            "plan", "ms a step (quartiles)", "its time / data's", "predicted ms", "predicted ratio", "peak MiB");
  for (const Division& d : divisions) {
    std::vector<double> ratios;
    for (size_t i = 0; i < d.rounds.size(); ++i) ratios.push_back(d.rounds[i] / divisions[0].rounds[i]);
    print_out("{:<32} {:>24} {:>22} {:>14.1f} {:>16.2f} {:>9.0f}\n", d.name, to_string(spread_of(d.rounds), 1e3, 1),
              to_string(spread_of(ratios), 1, 2), d.predicted * 1e3, d.predicted / divisions[0].predicted,
              d.peak_bytes / (1 << 20));
  }
  return 0;
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  return altiplano::bench::run(argc, argv);
}
