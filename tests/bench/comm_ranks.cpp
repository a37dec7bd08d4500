// The ranks of bench_comm, started by it under mpirun: messages between ranks 0 and 1 and all_reduce among all, by a
// comm plugin whose ranks take themselves for ranks of several hosts. Prints "<name>_<what> <bytes> <seconds>".
//   bench_comm_ranks PLUGIN-FILE NAME RANKS-OF-A-HOST two_level|flat LARGEST-BYTES
// RANKS-OF-A-HOST 0: they are on the hosts they are on, as under srun.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "framework/conformance/check.hpp"
#include "framework/conformance/ranks.hpp"
#include "framework/launch/pmix_rendezvous.hpp"
#include "tests/bench/bench.hpp"
#include "tests/bench/collective_sizes.hpp"

namespace altiplano::bench {
namespace {

Status barrier(Communicator& comm, GroupId world) {
  ALTIPLANO_ASSIGN(const Event event,
                   comm.collective(world, {.kind = CollectiveKind::kBarrier}, StreamKind::kCollective, {}));
  return comm.wait(event);
}

/// Seconds of a message one way; ranks 0 and 1.
Result<double> ping_pong(Communicator& comm, float* data, int64_t bytes, int calls) {
  const RankId peer(1 - comm.rank().value);
  const double begin = now();
  for (int i = 0; i < calls; ++i)
    for (const bool is_send : {comm.rank().value == 0, comm.rank().value != 0}) {
      auto event = is_send ? comm.send(peer, 1, data, bytes, StreamKind::kTransfer, {})
                           : comm.recv(peer, 1, data, bytes, StreamKind::kTransfer, {});
      ALTIPLANO_RETURN_IF_ERROR(event.status());
      ALTIPLANO_RETURN_IF_ERROR(comm.wait(*event));
    }
  return (now() - begin) / calls / 2;
}

Result<double> all_reduce(Communicator& comm, GroupId world, float* data, int64_t bytes, int calls) {
  double sum = 0;
  for (int i = 0; i < calls; ++i) {
    std::fill_n(data, bytes / 4, 1.0F);
    ALTIPLANO_RETURN_IF_ERROR(barrier(comm, world));
    const double begin = now();
    const CollectiveCall call{CollectiveKind::kAllReduce, ReduceKind::kSum, DType::kF32, data, data, bytes / 4, 0};
    ALTIPLANO_ASSIGN(const Event event, comm.collective(world, call, StreamKind::kCollective, {}));
    ALTIPLANO_RETURN_IF_ERROR(comm.wait(event));
    sum += now() - begin;
  }
  return sum / calls;
}

Status measure(Communicator& comm, const std::string& name, int64_t largest) {
  std::vector<RankId> all;
  for (int rank = 0; rank < comm.world_size(); ++rank) all.emplace_back(rank);
  ALTIPLANO_ASSIGN(const GroupId world, comm.create_group(all, "world"));
  std::vector<float> data(static_cast<size_t>(largest / 4));
  for (int64_t bytes : sizes_up_to(largest)) {
    const int calls = calls_of(bytes);
    ALTIPLANO_RETURN_IF_ERROR(barrier(comm, world));
    double one_way = 0;
    if (comm.rank().value < 2) {
      ALTIPLANO_RETURN_IF_ERROR(ping_pong(comm, data.data(), bytes, 2).status());
      ALTIPLANO_ASSIGN(one_way, ping_pong(comm, data.data(), bytes, calls));
    }
    ALTIPLANO_ASSIGN(const double reduced, all_reduce(comm, world, data.data(), bytes, calls));
    if (comm.rank().value == 0)
      std::printf("%s_message %lld %.9f\n%s_all_reduce %lld %.9f\n", name.c_str(), static_cast<long long>(bytes),
                  one_way, name.c_str(), static_cast<long long>(bytes), reduced);
  }
  return Status::ok();
}

Status run(char** argv) {
  ALTIPLANO_ASSIGN(auto world, connect_pmix_rendezvous());
  LoadedPlugin plugin;
  ALTIPLANO_RETURN_IF_ERROR(load_plugin(argv[1], plugin));
  const conformance::Subject subject{plugin.info, plugin.descriptor, plugin.object};
  const int on_host = std::atoi(argv[3]);
  conformance::RanksOnHosts hosts(*world, std::max(on_host, 1));
  CommOptions options;
  options.two_level = std::string(argv[4]) == "two_level";
  ALTIPLANO_ASSIGN(const auto comm, subject.as<CommBackend>().connect(on_host == 0 ? *world : hosts, options));
  return measure(*comm, argv[2], std::atoll(argv[5]));
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  using namespace altiplano;
  bench::require(argc == 6 ? bench::run(argv) : invalid_argument("five arguments; bench_comm gives them"));
  return 0;
}
