#include "framework/launch/task_ranks.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/launch/allocation.hpp"
#include "framework/launch/pmix_rendezvous.hpp"

namespace altiplano {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr auto kMeetingDeadline = std::chrono::seconds(60);

bool has_pmix_server(const Variables& variables) {
  return variables.contains("PMIX_NAMESPACE");
}

Status cannot_meet(const Tasks& tasks, int started) {
  return invalid_argument(
      "{} were started, and none of them can reach another: each would be a job of its own. Start them with {} (this "
      "process has no PMIx server; `srun --mpi=list` says what is there)",
      counted(started, "task"), tasks.how_to_start.empty() ? "mpirun of Open MPI" : tasks.how_to_start);
}

/// mpirun without a workload manager says how many it started, too.
int started_by_mpirun(const Variables& variables) {
  const auto found = variables.find("OMPI_COMM_WORLD_SIZE");
  return found == variables.end() ? 0 : static_cast<int>(parse_int(found->second).value_or(0));
}

/// Processors for computing: what was asked for each, within what this process may use. An affinity mask of the whole
/// host is shared by the host's ranks.
int threads_of_task(const RankEnvironment& environment, const Tasks& tasks, TaskRanks& ranks) {
  const int usable = num_usable_cpus();
  const auto on_host =
      static_cast<int>(std::ranges::count(environment.hosts, environment.hosts[environment.rank.index()]));
  const bool is_bound = usable < sysconf(_SC_NPROCESSORS_ONLN);
  const int own = is_bound ? usable : threads_per_rank(usable, on_host);
  if (tasks.cpus_each == 0) return own;
  if (is_bound && usable < tasks.cpus_each)
    ranks.notices.push_back(
        fmt::format("rank {} may run on {}, the job asked for {} a task: give srun --cpus-per-task={} too, which it "
                    "does not take from sbatch",
                    environment.rank, counted(usable, "processor"), tasks.cpus_each, tasks.cpus_each));
  return std::min(tasks.cpus_each, own);
}

/// The host last, as ranks call it among themselves.
Result<std::vector<NetworkAddress>> exchange_addresses(Rendezvous& rendezvous, NetworkAddress address) {
  address.push_back(rendezvous.host());
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.put("launch/address", join(address, "/")));
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(kMeetingDeadline));
  std::vector<NetworkAddress> addresses;
  for (int rank = 0; rank < rendezvous.world_size(); ++rank) {
    ALTIPLANO_ASSIGN(const std::string text, rendezvous.get(RankId(rank), "launch/address"));
    addresses.push_back(split(text, '/'));
  }
  return addresses;
}

/// A process that nobody started beside others, in an allocation made for several.
void hint_at_tasks(const Tasks& tasks, TaskRanks& ranks) {
  if (tasks.started > 0 || tasks.planned < 2) return;
  ranks.notices.push_back(
      fmt::format("the job has {}, and this process is one rank, alone; `{} altiplano train ...` "
                  "starts one rank per task",
                  counted(tasks.planned, "task"), tasks.how_to_start));
}

std::string job_id_of(const Rendezvous& rendezvous, const Variables& variables) {
  const auto found = find_allocation(variables, rendezvous.world_size());
  const int restarts = found.is_ok() ? found->allocation.restart_count : 0;
  return restarts == 0 ? rendezvous.job_id() : fmt::format("{}-{}", rendezvous.job_id(), restarts);
}

}  // namespace

Result<TaskRanks> meet_tasks(RankEnvironment& environment, const Variables& variables) {
  TaskRanks ranks;
  ALTIPLANO_ASSIGN(const Tasks tasks, find_tasks(variables));
  environment.rank = RankId(tasks.index);
  const int started = std::max(tasks.started, started_by_mpirun(variables));
  const bool has_server = has_pmix_server(variables);
  if (started == 1 || (started == 0 && !has_server)) {
    environment.rank = RankId(0);
    hint_at_tasks(tasks, ranks);
    return ranks;
  }
  if (!has_server) return cannot_meet(tasks, started);
  ALTIPLANO_ASSIGN(ranks.rendezvous, connect_pmix_rendezvous());
  Rendezvous& rendezvous = *ranks.rendezvous;
  environment.rank = rendezvous.rank();
  environment.world_size = rendezvous.world_size();
  if (tasks.started > 1 && tasks.started != rendezvous.world_size())
    return invalid_argument("{} were started, PMIx knows {}; start all of them with one {}",
                            counted(tasks.started, "task"), rendezvous.world_size(), tasks.how_to_start);
  ALTIPLANO_ASSIGN(const auto addresses, exchange_addresses(rendezvous, tasks.switches));
  for (const NetworkAddress& address : addresses) environment.hosts.push_back(address.back());
  if (num_hosts(environment.hosts) > 1) environment.places = RankPlaces::from_addresses(addresses);
  environment.rendezvous = "pmix";
  environment.job_id = job_id_of(rendezvous, variables);
  if (!variables.contains("OMP_NUM_THREADS")) environment.threads = threads_of_task(environment, tasks, ranks);
  return ranks;
}

Status check_is_only_task(const std::string& command, const Variables& variables) {
  ALTIPLANO_ASSIGN(const Tasks tasks, find_tasks(variables));
  const int started = std::max(tasks.started, started_by_mpirun(variables));
  if (started < 2) return Status::ok();
  return invalid_argument(
      "{} were started and each is an `altiplano {}` of its own; start it once (srun --ntasks=1), or "
      "train with one rank per task: srun --mpi=pmix altiplano train ...",
      counted(started, "task"), command);
}

int num_hosts(const std::vector<std::string>& hosts) {
  return std::max(1, static_cast<int>(std::set(hosts.begin(), hosts.end()).size()));
}

std::string placement_text(const std::vector<std::string>& hosts) {
  std::vector<std::string> runs;
  for (size_t begin = 0, end = 0; begin < hosts.size(); begin = end) {
    while (end < hosts.size() && hosts[end] == hosts[begin]) ++end;
    runs.push_back(end - begin == 1 ? fmt::format("{}: rank {}", hosts[begin], begin)
                                    : fmt::format("{}: ranks {}-{}", hosts[begin], begin, end - 1));
  }
  return join(runs, "; ");
}

}  // namespace altiplano
