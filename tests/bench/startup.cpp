// bench_startup: what passes between the command and the first step. Of each rank, as processes of their own that do
// it at the same time: its parts with the launcher's plan given. Within one process: a rank that plans and proves for
// itself against one that takes the launcher's plan. Through the program: a launch to the line that says the ranks are
// ready.
//
//   bench_startup [--model gpt6|gpt2|tiny] [--precision fp32|bf16] [--ranks N] [--rounds N]
#include <cstdio>

#include "framework/base/text.hpp"
#include "framework/conformance/ranks.hpp"
#include "framework/runtime/kernel_choice.hpp"
#include "framework/runtime/rank_model.hpp"
#include "tests/bench/bench_job.hpp"

namespace altiplano::bench {
namespace {

/// Runs the program; the seconds until a line that starts with `word`, and until its end.
struct Passed {
  double ready = 0, end = 0;
};
Passed run_program(const std::string& arguments, const std::string& word) {
  Passed passed;
  const double begin = now();
  FILE* output = popen((std::string(ALTIPLANO_BENCH_PROGRAM) + " " + arguments + " 2>&1").c_str(), "r");
  if (output == nullptr) require(runtime_failure("cannot run {}", ALTIPLANO_BENCH_PROGRAM));
  std::string all;
  for (char line[4096]; fgets(line, sizeof(line), output) != nullptr; all += line)
    if (passed.ready == 0 && std::string(line).starts_with(word)) passed.ready = now() - begin;
  const int how = pclose(output);
  passed.end = now() - begin;
  if (how != 0 || passed.ready == 0) require(runtime_failure("altiplano {} ended with {}: {}", arguments, how, all));
  return passed;
}

void print_row(const char* what, const std::string& times, const std::string& ratio = "") {
  print_out("{:<58} {:>24} {:>20}\n", what, times, ratio);
  flush_out();
}

/// Seconds of the parts of a rank's start.
struct RankStart {
  double job = 0, memory = 0, weights = 0;
};

/// What a rank does once its process runs and has found the plugins. Its plan is made before, as by a launcher.
Status start_rank(Rendezvous& rendezvous, const BenchFolder& folder, int ranks) {
  JobRequest request;
  request.num_ranks = ranks;
  {
    const Job launcher = require(prepare_job(load(folder), request));
    request.proved = ProvedPlan{launcher.plan.to_yaml(), rendezvous.rank()};
  }
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(std::chrono::minutes(1)));
  RankStart times;
  double begin = now();
  const auto lap = [&begin] { return now() - std::exchange(begin, now()); };
  ALTIPLANO_ASSIGN(const Job job, prepare_job(load(folder), request));
  times.job = lap();
  RankEnvironment environment;
  environment.rank = rendezvous.rank();
  environment.world_size = ranks;
  ALTIPLANO_ASSIGN(const auto model, RankModel::open(job, environment, rendezvous, false));
  times.memory = lap();
  ALTIPLANO_RETURN_IF_ERROR(model->executor().initialize(job.graph->seed));
  times.weights = lap();
  std::ofstream(folder / fmt::format("start-{}", rendezvous.rank().value))
      << times.job << ' ' << times.memory << ' ' << times.weights;
  return rendezvous.fence(std::chrono::minutes(1));
}

void time_ranks(const BenchFolder& folder, int ranks, int rounds) {
  std::vector<double> processes;
  std::vector<std::vector<RankStart>> starts(static_cast<size_t>(ranks));
  for (int round = 0; round < rounds; ++round) {
    processes.push_back(run_program("plugins list", "").end);
    const auto start = [&](Rendezvous& rendezvous) { return start_rank(rendezvous, folder, ranks); };
    require(conformance::first_failure(conformance::run_processes_all(ranks, start)));
    for (int rank = 0; rank < ranks; ++rank) {
      RankStart& times = starts[static_cast<size_t>(rank)].emplace_back();
      std::ifstream(folder / fmt::format("start-{}", rank)) >> times.job >> times.memory >> times.weights;
    }
  }
  print_row("a process that finds all plugins, ms", to_string(spread_of(processes), 1e3, 1));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto row = [&](const char* what, auto seconds) {
      std::vector<double> values;
      for (size_t i = 0; i < processes.size(); ++i)
        values.push_back(seconds(starts[static_cast<size_t>(rank)][i], processes[i]));
      print_row(fmt::format("rank {}: {}, ms", rank, what).c_str(), to_string(spread_of(values), 1e3, 1));
    };
    row("job file, model, plan, program", [](const RankStart& s, double) { return s.job; });
    row("meeting the others, memory, kernels", [](const RankStart& s, double) { return s.memory; });
    row("initial weights", [](const RankStart& s, double) { return s.weights; });
    row("all of it, with the process", [](const RankStart& s, double p) { return p + s.job + s.memory + s.weights; });
  }
}

void race_ranks(const BenchFolder& folder, int ranks, int rounds) {
  JobRequest planning;
  planning.num_ranks = ranks;
  const Job launcher = require(prepare_job(load(folder), planning));
  JobRequest given = planning;
  given.proved = ProvedPlan{launcher.plan.to_yaml(), RankId(0)};
  const auto prepare = [&](const JobRequest& request) {
    const Job job = require(prepare_job(load(folder), request));
    if (!job.is_proved) require(verify_programs(job.programs));
  };
  JobRequest model_only = planning;
  model_only.needs_plan = false;
  std::vector<Contestant> contestants = {{"given", [&] { prepare(given); }},
                                         {"own", [&] { prepare(planning); }},
                                         {"graph", [&] { require(prepare_job(load(folder), model_only)); }}};
  race(contestants, rounds);
  print_row("a rank that takes the launcher's plan, ms", to_string(spread_of(contestants[0].seconds), 1e3, 1));
  print_row("a rank that plans and proves for itself, ms", to_string(spread_of(contestants[1].seconds), 1e3, 1),
            to_string(ratio(contestants[1], contestants[0]), 1, 2));
  print_row("of both: job file, model and gradients, ms", to_string(spread_of(contestants[2].seconds), 1e3, 1),
            to_string(ratio(contestants[2], contestants[0]), 1, 2));
}

void time_launches(const BenchFolder& folder, int ranks, int rounds) {
  std::vector<double> ready, alone;
  const std::string arguments = fmt::format("launch -n {} -c {} --set train.resume=none --set checkpoint.dir={}", ranks,
                                            folder / "job.yaml", folder / "run/saved");
  for (int round = -1; round < rounds; ++round) {  // the first one fills the kernel database
    const Passed help = run_program("--help", "");
    std::filesystem::remove_all(folder / "run");
    const Passed launched = run_program(arguments, "altiplano ");
    if (round < 0) continue;
    ready.push_back(launched.ready);
    alone.push_back(help.end);
  }
  print_row("a process that only prints its help, ms", to_string(spread_of(alone), 1e3, 1));
  print_row("launch to all ranks ready for the first step, ms", to_string(spread_of(ready), 1e3, 1));
}

int run(int argc, char** argv) {
  const std::string name = argument(argc, argv, "model", "gpt6");
  const int ranks = std::stoi(argument(argc, argv, "ranks", "2")),
            rounds = std::stoi(argument(argc, argv, "rounds", "7"));
  const BenchFolder folder;
  folder.write("job.yaml", job_text(bench_model(name), argument(argc, argv, "precision", "fp32"), ranks, folder));
  std::string text;
  while (text.size() < 40000) text += "in the beginning was the word ";
  folder.write("text.txt", text);
  run_program(fmt::format("data pack --tokenizer byte -o {} {}", folder / "text.h5", folder / "text.txt"), "");
  print_out("{}, {} ranks\n\n{:<58} {:>24} {:>20}\n", name, ranks, "what", "median (quartiles)", "times the launcher's");
  time_ranks(folder, ranks, rounds);  // first: processes are forked from one in which nothing runs yet
  race_ranks(folder, ranks, rounds);
  time_launches(folder, ranks, rounds);
  return 0;
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  return altiplano::bench::run(argc, argv);
}
