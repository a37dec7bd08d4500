// Prints docs/fidelity-published.md: what the simulator says about runs that others measured and published, beside
// their measurements, with the constants that stand for the machine kind. Pure computation: the same text everywhere.
//
//   bench_fidelity [--cluster PRESET] [--rows FILE]      FILE gets every row, as CSV
#include <cstdint>
#include <fstream>
#include <functional>

#include "framework/base/console.hpp"
#include "framework/base/text.hpp"
#include "framework/cluster/presets.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/simulate/plan_estimate.hpp"
#include "tests/bench/bench.hpp"
#include "tests/bench/fidelity/page.hpp"
#include "tests/support/published_rows.hpp"
#include "tests/support/ranking.hpp"

namespace altiplano::bench {
namespace {

using namespace altiplano::test;

constexpr size_t kNumWorst = 6;
const std::string kFixtures = ALTIPLANO_BENCH_FIXTURES;

struct Compared {
  PublishedRow row;
  Predicted times;
};

std::vector<Predicted> times_of(const std::vector<Compared>& rows) {
  std::vector<Predicted> times;
  for (const Compared& row : rows) times.push_back(row.times);
  return times;
}

std::vector<PublishedRow> rows_of(const std::string& file) {
  return require(read_published_rows(kFixtures + "/" + file));
}

Compared compare(const PublishedRow& row, const LoweredRow& lowered, const Cluster& cluster) {
  return {row, {row.seconds, require(simulate_row(row, lowered, cluster)).step.value}};
}

/// Rows with what they lower to, for those that are simulated often.
using LoweredRows = std::vector<std::pair<PublishedRow, LoweredRow>>;

LoweredRows lowered_rows(const std::vector<PublishedRow>& rows, PublishedSimulator& simulator) {
  LoweredRows lowered;
  for (const PublishedRow& row : rows) lowered.emplace_back(row, require(simulator.lowered(row)));
  return lowered;
}

std::vector<Compared> compare(const LoweredRows& rows, const Cluster& cluster) {
  std::vector<Compared> compared;
  for (const auto& [row, lowered] : rows) compared.push_back(compare(row, lowered, cluster));
  return compared;
}

LoweredRows with_hidden(const LoweredRows& all, int64_t hidden) {
  LoweredRows some;
  for (const auto& row : all)
    if (row.first.hidden == hidden) some.push_back(row);
  return some;
}

std::vector<Compared> with_hidden(const std::vector<Compared>& all, int64_t hidden) {
  std::vector<Compared> some;
  for (const Compared& row : all)
    if (row.row.hidden == hidden) some.push_back(row);
  return some;
}

/// Rows that people choose between: of one model, number of GPUs and batch.
std::map<std::string, std::vector<Predicted>> by_choice(const std::vector<Compared>& rows) {
  std::map<std::string, std::vector<Predicted>> groups;
  for (const Compared& r : rows)
    groups[fmt::format("{}/{}/{}/{}", r.row.hidden, r.row.layers, r.row.gpus, r.row.batch)].push_back(r.times);
  return groups;
}

/// Mean over the groups of at least three rows.
double mean_over_choices(const std::vector<Compared>& rows,
                         const std::function<double(const std::vector<Predicted>&)>& of) {
  double sum = 0;
  int groups = 0;
  for (const auto& [name, group] : by_choice(rows)) {
    if (group.size() < 3) continue;
    sum += of(group);
    ++groups;
  }
  return groups > 0 ? sum / groups : 0;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

void print_summary_line(const std::string& name, const std::vector<Compared>& rows) {
  const std::vector<Predicted> times = times_of(rows);
  print_out("| {} | {} | {} | {:+.1f} % | {:.2f} | {} |\n", name, rows.size(), percent(mean_absolute_error(times)),
            100 * mean_error(times), mean_over_choices(rows, kendall_tau), percent(mean_over_choices(rows, regret)));
}

void print_summary_head() {
  print_out("| rows | number | mean error | bias | tau | regret |\n|---|---|---|---|---|---|\n");
}

void print_rows(std::vector<Compared> rows, size_t most) {
  std::ranges::stable_sort(
      rows, [](const Compared& a, const Compared& b) { return std::abs(a.times.error()) > std::abs(b.times.error()); });
  print_out("| row | measured s | predicted s | error |\n|---|---|---|---|\n");
  for (size_t i = 0; i < std::min(most, rows.size()); ++i)
    print_out("| {} | {:.3f} | {:.3f} | {:+.1f} % |\n", rows[i].row.settings(), rows[i].times.measured,
              rows[i].times.predicted, 100 * rows[i].times.error());
  print_out("\n");
}

void print_by(const std::string& what, const std::vector<Compared>& rows,
              const std::function<std::string(const PublishedRow&)>& key) {
  std::map<std::string, std::vector<Predicted>> groups;
  for (const Compared& row : rows) groups[key(row.row)].push_back(row.times);
  print_out("| {} | number | mean error | bias |\n|---|---|---|---|\n", what);
  for (const auto& [name, group] : groups)
    print_out("| {} | {} | {} | {:+.1f} % |\n", name, group.size(), percent(mean_absolute_error(group)),
              100 * mean_error(group));
  print_out("\n");
}

Cluster with_network(Cluster cluster, double bandwidth) {
  cluster.levels.back().bandwidth = bandwidth;
  return cluster;
}

/// The network's bandwidth with the least mean error over the rows, found on a scale of equal ratios.
double fitted_bandwidth(const LoweredRows& rows, const Cluster& cluster) {
  constexpr double kLeast = 2e9, kMost = 50e9, kRatio = 1.1;
  double best = kLeast, least = 1e300;
  for (double bandwidth = kLeast; bandwidth <= kMost; bandwidth *= kRatio) {
    const double error = mean_absolute_error(times_of(compare(rows, with_network(cluster, bandwidth))));
    if (error < least) {
      least = error;
      best = bandwidth;
    }
  }
  return best;
}

void print_each_from_the_other(const LoweredRows& rows, const Cluster& cluster) {
  const std::pair<const char*, LoweredRows> models[] = {{"18.4B", with_hidden(rows, 6144)},
                                                        {"3.6B", with_hidden(rows, 3072)}};
  print_out("| network fitted on | GB/s per device | its error | the other model's error |\n|---|---|---|---|\n");
  for (size_t i = 0; i < 2; ++i) {
    const double bandwidth = fitted_bandwidth(models[i].second, cluster);
    const auto error = [&](const LoweredRows& of) {
      return percent(mean_absolute_error(times_of(compare(of, with_network(cluster, bandwidth)))));
    };
    print_out("| {} | {:.1f} | {} | {} |\n", models[i].first, bandwidth / 1e9, error(models[i].second),
              error(models[1 - i].second));
  }
  print_out("\n");
}

constexpr double kGiB = 1 << 30;

Bytes states_of(const MemoryBreakdown& memory) {
  return memory.weights + memory.gradients + memory.optimizer;
}

/// Of a stage of blocks alone; activations of the first stage. A schedule with chunks would hold 1 + (p - 1) / (p v)
/// times as many.
void print_memory() {
  print_out("| model | states GiB | computed | activations GiB | computed |\n|---|---|---|---|---|\n");
  PublishedSimulator simulator({{}, true, 0, 51200});
  std::ifstream in(kFixtures + "/korthikanti_memory.csv");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> words = split(line, ',');
    if (line.starts_with('#') || words[0] == "model") continue;
    const auto n = [&](size_t i) { return std::stoi(words[i]); };
    const PublishedRow row{n(4) * n(5), n(6), n(7), n(1), n(2), n(3), 2048, n(4), 1, n(5), 0, words[0]};
    const LoweredRow lowered = require(simulator.lowered(row));
    const Bytes states = states_of(memory_of(lowered.programs[row.pipeline > 1 ? 1 : 0]));
    const Bytes activations = memory_of(lowered.programs[0]).activations;
    const double stages = row.pipeline, chunks = n(8), held = chunks > 1 ? 1 + (stages - 1) / (stages * chunks) : 1;
    print_out("| {} | {} | {:.2f} | {} | {:.2f} |\n", row.label, words[9], static_cast<double>(states.value) / kGiB,
              words[10], static_cast<double>(activations.value) / kGiB * held);
  }
  print_out("\n");
}

void print_bloom_memory() {
  print_out("| row | GB shown by the GPUs | GB computed |\n|---|---|---|\n");
  PublishedSimulator simulator(kBloomStyle);
  for (const PublishedRow& row : rows_of("bloom_grid.csv")) {
    const LoweredRow lowered = require(simulator.lowered(row));
    Bytes peak;
    for (const Program& program : lowered.programs) peak = std::max(peak, program.peak());
    print_out("| {} | {} | {:.1f} |\n", row.settings(), row.label, static_cast<double>(peak.value) / 1e9);
  }
  print_out("\n");
}

/// Rows that took no part in the fit, of machines that differ in their network.
void print_others(const Cluster& cluster) {
  constexpr double kEightPorts = 24e9;           // of 200 Gb/s: as measured on DGX A100, in the ml-engineering book
  constexpr double kFourPorts = 4 * 12.5e9 / 8;  // of 100 Gb/s, for eight devices
  print_out("## Other machines of the kind\n\nMegatron-LM, eight ports of 200 Gb/s a node:\n\n");
  PublishedSimulator megatron(kMegatronStyle);
  print_rows(compare(lowered_rows(rows_of("megatron.csv"), megatron), with_network(cluster, kEightPorts)), SIZE_MAX);
  print_out("BLOOM, four ports of 100 Gb/s a node:\n\n");
  PublishedSimulator bloom(kBloomStyle);
  std::vector<PublishedRow> rows = rows_of("bloom_grid.csv");
  std::erase_if(rows, [](const PublishedRow& row) { return row.seconds == 0; });
  const std::vector<Compared> compared = compare(lowered_rows(rows, bloom), with_network(cluster, kFourPorts));
  print_rows(compared, SIZE_MAX);
  const std::vector<Predicted> times = times_of(compared);
  print_out("Mean error {}, bias {:+.1f} %, tau {:.2f}.\n\n", percent(mean_absolute_error(times)),
            100 * mean_error(times), kendall_tau(times));
}

void write_rows(const std::string& file, const std::vector<Compared>& rows) {
  std::ofstream out(file);
  out << "settings;measured;predicted;error\n";
  for (const Compared& r : rows)
    out << fmt::format("{};{:.6f};{:.6f};{:.4f}\n", r.row.settings(), r.times.measured, r.times.predicted,
                       r.times.error());
}

int run(int argc, char** argv) {
  PluginRegistry::instance().add_search_path(ALTIPLANO_BENCH_PLUGIN_DIR);
  const Cluster cluster = require(load_cluster(argument(argc, argv, "cluster", "dgx-a100-80")));
  std::vector<Compared> single;
  {
    PublishedSimulator simulator(kSingleNodeStyle);
    for (const PublishedRow& row : rows_of("vtrain_single_node.csv"))
      single.push_back(compare(row, require(simulator.lowered(row)), cluster));
  }
  PublishedSimulator simulator(kMultiNodeStyle);
  const LoweredRows multi_rows = lowered_rows(rows_of("vtrain_multi_node.csv"), simulator);
  const std::vector<Compared> multi = compare(multi_rows, cluster);
  print_out("{}", kPageHead);
  print_summary_head();
  print_summary_line("one node", single);
  print_summary_line("several nodes", multi);
  print_summary_line("of them 3.6B on 64 GPUs", with_hidden(multi, 3072));
  print_summary_line("of them 18.4B on 256 GPUs", with_hidden(multi, 6144));
  print_out("\n## Each model from the other\n\n");
  print_each_from_the_other(multi_rows, cluster);
  print_out("## Worst rows\n\nOne node:\n\n");
  print_rows(single, kNumWorst);
  print_out("Several nodes, every row:\n\n");
  print_rows(multi, multi.size());
  print_others(cluster);
  print_out("{}", kMemoryWords);
  print_memory();
  print_out("{}", kBloomMemoryWords);
  print_bloom_memory();
  print_out("## Where errors are\n\n");
  print_by("tensor", single, [](const PublishedRow& r) { return std::to_string(r.tensor); });
  print_by("microbatch", single, [](const PublishedRow& r) { return std::to_string(r.microbatch); });
  print_by("pipeline", single, [](const PublishedRow& r) { return std::to_string(r.pipeline); });
  print_by("hidden size", single, [](const PublishedRow& r) { return std::to_string(r.hidden); });
  if (const std::string file = argument(argc, argv, "rows", ""); !file.empty()) {
    std::vector<Compared> all = single;
    all.insert(all.end(), multi.begin(), multi.end());
    write_rows(file, all);
  }
  return 0;
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  return altiplano::bench::run(argc, argv);
}
