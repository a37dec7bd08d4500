#pragma once
// Training runs of the program as a user starts them, for benchmarks of steps.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "framework/base/text.hpp"
#include "tests/bench/bench_job.hpp"

namespace altiplano::bench {

/// The first steps of a run, which warm up, do not count.
constexpr int kWarmUpSteps = 2;

/// Lines that a command prints; ends the program when it fails.
inline std::vector<std::string> lines_of(const std::string& command) {
  FILE* output = popen((command + " 2>&1").c_str(), "r");
  if (output == nullptr) require(runtime_failure("cannot run {}", command));
  std::vector<std::string> lines;
  for (char line[4096]; fgets(line, sizeof(line), output) != nullptr;) lines.emplace_back(line);
  if (pclose(output) != 0) require(runtime_failure("{} failed: {}", command, join(lines, "")));
  return lines;
}

/// The median of the steps after the first ones.
inline double warm_median(std::vector<double> seconds) {
  seconds.erase(seconds.begin(), seconds.begin() + kWarmUpSteps);
  return spread_of(std::move(seconds)).median;
}

/// Text and token file of the job in the folder.
inline void write_data(const BenchFolder& folder) {
  std::string text;
  while (text.size() < 400000) text += "in the beginning was the word ";
  folder.write("text.txt", text);
  lines_of(fmt::format("{} data pack --tokenizer byte -o {} {}", ALTIPLANO_BENCH_PROGRAM, folder / "text.h5",
                       folder / "text.txt"));
}

struct TrainingRun {
  double step_seconds = 0;                  ///< median of the warm ones
  double peak_bytes = 0;                    ///< of rank 0, resident
  double predicted_arenas = 0, arenas = 0;  ///< bytes of rank 0's buffers: the program's, and the device's peak
};
/// Trains the folder's job from initial weights; `settings`: more of "--set key=value".
inline TrainingRun run_training(const BenchFolder& folder, int ranks, int threads, int steps,
                                const std::string& settings = "") {
  std::filesystem::remove_all(folder / "run");
  lines_of(
      fmt::format("{} launch -n {} -c {} --set train.max_steps={} --set device.threads={} --set train.resume=none "
                  "--set checkpoint.dir={} {}",
                  ALTIPLANO_BENCH_PROGRAM, ranks, folder / "job.yaml", steps, threads, folder / "run/saved", settings));
  std::vector<double> seconds;
  std::ifstream metrics(folder / "run/metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const auto entry = nlohmann::json::parse(line);
    if (entry.contains("seconds")) seconds.push_back(entry["seconds"]);
  }
  std::ifstream memory(folder / "run/memory-rank-0.json");
  const auto report = nlohmann::json::parse(memory);
  return {warm_median(std::move(seconds)), report.at("resident_peak"), report.at("predicted"), report.at("peak")};
}

}  // namespace altiplano::bench
