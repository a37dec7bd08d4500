// bench_startup: what passes between the command and the first step. Within one process: a rank that plans and proves
// for itself against one that takes the launcher's plan. Through the program: a launch to the line that says the ranks
// are ready.
//
//   bench_startup [--model gpt6|gpt2|tiny] [--precision fp32|bf16] [--ranks N] [--rounds N]
#include <cstdio>

#include "framework/base/text.hpp"
#include "framework/runtime/kernel_choice.hpp"
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
  print_out("{}, {} ranks\n\n{:<58} {:>24} {:>20}\n", name, ranks, "what", "median (quartiles)", "times the first row");
  race_ranks(folder, ranks, rounds);
  time_launches(folder, ranks, rounds);
  return 0;
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  return altiplano::bench::run(argc, argv);
}
