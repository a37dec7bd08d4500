// bench_collectives: all_reduce among processes of this host, for sizes from 32 B up: in place in registered memory,
// through the rings from plain memory, and, where it was built, Open MPI's in place; beside them a memcpy of as many
// bytes on every rank at once. Every buffer is freshly written by its owner before each call. All contestants run in
// every round; what counts is the ratio within a round.
//
//   bench_collectives [--ranks N] [--rounds N] [--largest BYTES]
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "framework/conformance/ranks.hpp"
#include "framework/plugin/registry.hpp"
#include "tests/bench/bench.hpp"
#include "tests/bench/collective_sizes.hpp"

namespace altiplano::bench {
namespace {

/// Seconds of a call by contestant and bytes, one per round.
using Times = std::map<std::string, std::map<int64_t, std::vector<double>>>;

void take(std::istream& lines, Times& times) {
  std::string name;
  int64_t bytes = 0;
  for (double seconds = 0; lines >> name >> bytes >> seconds;) times[name][bytes].push_back(seconds);
}

Status barrier(Communicator& comm, GroupId world) {
  ALTIPLANO_ASSIGN(const Event event,
                   comm.collective(world, {.kind = CollectiveKind::kBarrier}, StreamKind::kCollective, {}));
  return comm.wait(event);
}

/// Mean over the calls, as this rank sees it.
Result<double> seconds_of(Communicator& comm, GroupId world, int64_t bytes, float* data, float* copy) {
  const int calls = calls_of(bytes);
  double sum = 0;
  for (int i = 0; i < calls; ++i) {
    std::fill_n(data, bytes / 4, 1.0F);
    ALTIPLANO_RETURN_IF_ERROR(barrier(comm, world));
    const double begin = now();
    if (copy != nullptr) {
      std::memcpy(copy, data, static_cast<size_t>(bytes));
    } else {
      const CollectiveCall call{CollectiveKind::kAllReduce, ReduceKind::kSum, DType::kF32, data, data, bytes / 4, 0};
      ALTIPLANO_ASSIGN(const Event event, comm.collective(world, call, StreamKind::kCollective, {}));
      ALTIPLANO_RETURN_IF_ERROR(comm.wait(event));
    }
    sum += now() - begin;
  }
  return sum / calls;
}

/// What a rank does in a round; rank 0 writes the times into `file`.
Status run_rank(Communicator& comm, int64_t largest, const std::string& file) {
  std::vector<RankId> ranks;
  for (int r = 0; r < comm.world_size(); ++r) ranks.emplace_back(r);
  ALTIPLANO_ASSIGN(const GroupId world, comm.create_group(ranks, "world"));
  auto* registered = static_cast<float*>(comm.allocate_registered(largest));
  if (registered == nullptr) return runtime_failure("comm/shm has no registered memory");
  std::vector<float> plain(static_cast<size_t>(largest / 4)), copy(plain.size());
  std::ofstream out(comm.rank().value == 0 ? file : "/dev/null");
  for (int64_t bytes : sizes_up_to(largest)) {
    ALTIPLANO_ASSIGN(const double in_place, seconds_of(comm, world, bytes, registered, nullptr));
    ALTIPLANO_ASSIGN(const double rings, seconds_of(comm, world, bytes, plain.data(), nullptr));
    ALTIPLANO_ASSIGN(const double memcpy, seconds_of(comm, world, bytes, plain.data(), copy.data()));
    out << "in_place " << bytes << ' ' << in_place << "\nrings " << bytes << ' ' << rings << "\nmemcpy " << bytes << ' '
        << memcpy << '\n';
  }
  comm.free_registered(registered);
  return Status::ok();
}

void run_ours(int ranks, int64_t largest, Times& times) {
  const std::string file = std::filesystem::temp_directory_path() / fmt::format("bench_collectives.{}", getpid());
  CommBackend* backend = require(PluginRegistry::instance().comm("shm"));
  const auto body = [&](Communicator& comm) { return run_rank(comm, largest, file); };
  require(conformance::first_failure(
      conformance::run_backend_all(ranks, *backend, {}, body, conformance::RanksAre::kProcesses)));
  std::ifstream lines(file);
  take(lines, times);
  std::filesystem::remove(file);
}

void run_open_mpi(int ranks, int64_t largest, Times& times) {
#ifdef ALTIPLANO_BENCH_MPI
  const std::string command =
      fmt::format("mpirun --allow-run-as-root --oversubscribe -n {} {} {}", ranks, ALTIPLANO_BENCH_MPI, largest);
  FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) require(runtime_failure("cannot run {}", command));
  std::stringstream lines;
  for (char line[256]; fgets(line, sizeof(line), output) != nullptr;) lines << line;
  if (pclose(output) != 0) require(runtime_failure("{} failed", command));
  take(lines, times);
#else
  (void)ranks, (void)largest, (void)times;
#endif
}

Spread ratios(const std::vector<double>& others, const std::vector<double>& own) {
  std::vector<double> values;
  for (size_t i = 0; i < std::min(others.size(), own.size()); ++i) values.push_back(others[i] / own[i]);
  return spread_of(std::move(values));
}

void print_table(int ranks, const Times& times) {
  print_out("all_reduce of f32, {} ranks of this host; GB/s: the bytes of all ranks' messages over time; (quartiles)\n",
            ranks);
  print_out("{:>11} {:>26} {:>22} {:>20} {:>20} {:>20}\n", "bytes", "in place, us", "GB/s, of all ranks",
            "rings / in place", "Open MPI / in place", "memcpy / in place");
  for (const auto& [bytes, own] : times.at("in_place")) {
    std::vector<double> rates;
    for (double seconds : own) rates.push_back(static_cast<double>(ranks * bytes) / seconds);
    const auto column = [&](const char* name) {
      const auto found = times.find(name);
      return found == times.end() ? std::string("not built") : to_string(ratios(found->second.at(bytes), own), 1, 2);
    };
    print_out("{:>11} {:>26} {:>22} {:>20} {:>20} {:>20}\n", bytes, to_string(spread_of(own), 1e6, 1),
              to_string(spread_of(rates), 1e-9, 2), column("rings"), column("open_mpi"), column("memcpy"));
  }
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  using namespace altiplano;
  using namespace altiplano::bench;
  const int ranks = std::stoi(argument(argc, argv, "ranks", "2")),
            rounds = std::stoi(argument(argc, argv, "rounds", "7"));
  const int64_t largest = std::stoll(argument(argc, argv, "largest", "67108864"));
  PluginRegistry::instance().add_search_path(ALTIPLANO_BENCH_PLUGIN_DIR);
  Times times;
  for (int round = 0; round < rounds; ++round) {
    run_ours(ranks, largest, times);
    run_open_mpi(ranks, largest, times);
  }
  print_table(ranks, times);
  return 0;
}
