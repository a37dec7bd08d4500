#pragma once
// Runs a function on several ranks: threads of this process, forked processes, or processes that a launcher started.
#include <functional>
#include <vector>

#include "framework/api/comm.hpp"

namespace altiplano::conformance {

using RankFunction = std::function<Status(Rendezvous&)>;
using CommunicatorFunction = std::function<Status(Communicator&)>;

/// `function` on `ranks` threads over one InprocWorld. Returns the first failure in time, with its rank as context; all
/// threads have ended then. A function that throws fails with the exception's text.
Status run_ranks(int ranks, const RankFunction& function);

/// All ranks' statuses, by rank.
std::vector<Status> run_ranks_all(int ranks, const RankFunction& function);
/// The same as child processes over a rendezvous server of this process. A child's status crosses the process border by
/// code and text; a child that dies without one gives kRuntimeFailure with its signal.
std::vector<Status> run_processes_all(int ranks, const RankFunction& function);

/// The ranks are processes that srun or mpirun started, and each runs the same program: from now on what is run on as
/// many ranks as the world has is run on them, and on any other number not at all (every status is ok then). `world`
/// must outlive all runs.
void use_launched_ranks(Rendezvous& world);
/// The world, or null.
Rendezvous* launched_ranks();
/// How often something was run on them, and how often not.
struct LaunchedRuns {
  int run = 0, left_out = 0;
};
LaunchedRuns& launched_runs();

/// Ranks that take themselves for ranks of several hosts, the first `on_host` of the first, and so on.
class RanksOnHosts final : public Rendezvous {
 public:
  RanksOnHosts(Rendezvous& ranks, int on_host) : ranks_(ranks), on_host_(on_host) {}
  RankId rank() const override { return ranks_.rank(); }
  int world_size() const override { return ranks_.world_size(); }
  std::string host() const override { return fmt::format("{}-{}", ranks_.host(), rank().value / on_host_); }
  std::string job_id() const override { return ranks_.job_id(); }
  Status put(const std::string& key, const std::string& value) override { return ranks_.put(key, value); }
  Status fence(std::chrono::milliseconds deadline) override { return ranks_.fence(deadline); }
  Result<std::string> get(RankId rank, const std::string& key) override { return ranks_.get(rank, key); }

 private:
  Rendezvous& ranks_;
  const int on_host_;
};

/// kHosts: processes that take themselves for ranks of hosts of their own.
enum class RanksAre : uint8_t { kThreads, kProcesses, kHosts, kLaunched };

std::vector<Status> run_ranks_all(int ranks, const RankFunction& function, RanksAre ranks_are);

/// Connects each rank first.
std::vector<Status> run_backend_all(int ranks, CommBackend& backend, const CommOptions& options,
                                    const CommunicatorFunction& function, RanksAre ranks_are);
/// ok, or the first (by rank) that is not.
Status first_failure(const std::vector<Status>& statuses);

}  // namespace altiplano::conformance
