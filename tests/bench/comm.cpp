// bench_comm: comm/mpi and comm/ucx as between hosts, flat and in two levels, beside plain calls of MPI and
// ucx_perftest. On one machine all of them go by what the libraries use there (UCX: TCP over the loopback, for both).
// All contestants run in every round; what counts is the ratio within a round.
//
//   bench_comm [--ranks N] [--on-host N] [--rounds N] [--largest BYTES]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

#include "framework/base/text.hpp"
#include "tests/bench/bench.hpp"
#include "tests/bench/collective_sizes.hpp"

namespace altiplano::bench {
namespace {

/// Seconds of a call by contestant and bytes, one per round.
using Times = std::map<std::string, std::map<int64_t, std::vector<double>>>;

std::string output_of(const std::string& command) {
  FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) require(runtime_failure("cannot run {}", command));
  std::string text;
  for (char line[512]; fgets(line, sizeof(line), output) != nullptr;) text += line;
  if (pclose(output) != 0) require(runtime_failure("{} failed", command));
  return text;
}

void take(const std::string& text, Times& times) {
  std::istringstream lines(text);
  std::string name;
  int64_t bytes = 0;
  for (double seconds = 0; lines >> name >> bytes >> seconds;) times[name][bytes].push_back(seconds);
}

std::string mpirun(int ranks) {
  return fmt::format("timeout 300 mpirun --allow-run-as-root --oversubscribe -n {} ", ranks);
}

/// One way, as ucx_perftest's ping-pong has it: the third of the comma-separated figures, in microseconds.
void run_perftest(int64_t largest, Times& times) {
  for (int64_t bytes : sizes_up_to(largest)) {
    const int port = 20000 + getpid() % 20000;
    const std::string text = output_of(
        fmt::format("export UCX_WARN_UNUSED_ENV_VARS=n; timeout 60 ucx_perftest -p {0} >/dev/null 2>&1 & sleep 0.3; "
                    "timeout 60 ucx_perftest 127.0.0.1 -p {0} -t tag_lat -s {1} -n {2} -w 2 -f -v 2>/dev/null; wait",
                    port, bytes, calls_of(bytes)));
    const auto lines = split(trim(text), '\n');
    const auto figures = split(lines.back(), ',');
    if (figures.size() < 3) require(runtime_failure("ucx_perftest says: {}", text));
    times["perftest_message"][bytes].push_back(std::atof(figures[2].c_str()) * 1e-6);
  }
}

Spread ratios(const std::vector<double>& others, const std::vector<double>& own) {
  std::vector<double> values;
  for (size_t i = 0; i < std::min(others.size(), own.size()); ++i) values.push_back(others[i] / own[i]);
  return spread_of(std::move(values));
}

struct Column {
  std::string title, other, own;
};

void print_table(const std::string& title, const std::vector<Column>& columns, const Times& times, int64_t largest) {
  print_out("{}\n{:>11}", title, "bytes");
  for (const Column& column : columns) print_out(" {:>30}", column.title);
  print_out("\n");
  for (int64_t bytes : sizes_up_to(largest)) {
    print_out("{:>11}", bytes);
    for (const Column& column : columns) {
      const auto own = times.find(column.own), other = times.find(column.other);
      std::string text = "not built";
      if (own != times.end() && column.other.empty()) text = to_string(spread_of(own->second.at(bytes)), 1e6, 1);
      if (own != times.end() && other != times.end())
        text = to_string(ratios(other->second.at(bytes), own->second.at(bytes)), 1, 2);
      print_out(" {:>30}", text);
    }
    print_out("\n");
  }
}

void run_round(int ranks, int on_host, int64_t largest, Times& times) {
  const auto run = [&](const std::string& plugin, const std::string& name, int hosted, const std::string& levels) {
    take(output_of(mpirun(ranks) +
                   fmt::format("{} {} {} {} {} {}", ALTIPLANO_BENCH_COMM_RANKS, plugin, name, hosted, levels, largest)),
         times);
  };
  run(ALTIPLANO_BENCH_PLUGIN_DIR "/comm-mpi.so", "mpi", on_host, "flat");
  run(ALTIPLANO_BENCH_PLUGIN_DIR "/comm-mpi.so", "mpi_two_level", on_host, "two_level");
  take(output_of(mpirun(ranks) + fmt::format("{} {}", ALTIPLANO_BENCH_COMM_MPI, largest)), times);
#ifdef ALTIPLANO_BENCH_UCX
  setenv("UCX_TLS", "tcp,self", 1);
  setenv("UCX_NET_DEVICES", "lo", 1);
  run(ALTIPLANO_BENCH_PLUGIN_DIR "/comm-ucx.so", "ucx", on_host, "flat");
  run(ALTIPLANO_BENCH_PLUGIN_DIR "/comm-ucx.so", "ucx_two_level", on_host, "two_level");
  run_perftest(largest, times);
  unsetenv("UCX_TLS");
  unsetenv("UCX_NET_DEVICES");
#endif
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  using namespace altiplano;
  using namespace altiplano::bench;
  const int ranks = std::stoi(argument(argc, argv, "ranks", "4")),
            on_host = std::stoi(argument(argc, argv, "on-host", "2")),
            rounds = std::stoi(argument(argc, argv, "rounds", "5"));
  const int64_t largest = std::stoll(argument(argc, argv, "largest", "16777216"));
  Times times;
  for (int round = 0; round < rounds; ++round) run_round(ranks, on_host, largest, times);
  print_table("a message between two ranks, one way; us, and ratios above 1 where ours is faster (quartiles)",
              {{"mpi, us", "", "mpi_message"},
               {"plain MPI / mpi", "plain_mpi_message", "mpi_message"},
               {"ucx, us", "", "ucx_message"},
               {"ucx_perftest / ucx", "perftest_message", "ucx_message"}},
              times, largest);
  print_table(fmt::format("all_reduce of f32 among {} ranks, {} of a host", ranks, on_host),
              {{"mpi flat, us", "", "mpi_all_reduce"},
               {"plain MPI / flat", "plain_mpi_all_reduce", "mpi_all_reduce"},
               {"flat / two-level, mpi", "mpi_all_reduce", "mpi_two_level_all_reduce"},
               {"ucx flat, us", "", "ucx_all_reduce"},
               {"flat / two-level, ucx", "ucx_all_reduce", "ucx_two_level_all_reduce"}},
              times, largest);
  return 0;
}
