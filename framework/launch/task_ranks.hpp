#pragma once
// Ranks that another launcher than ours started: each task of `srun --mpi=pmix` or process of `mpirun` is one rank.
// They meet through PMIx, with no MPI.
//
// A process finds out whether others were started with it, and never takes itself for the whole job where they were:
// tasks that cannot meet are refused in no time.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/launch/rank_environment.hpp"

namespace altiplano {

struct TaskRanks {
  std::unique_ptr<Rendezvous> rendezvous;  ///< null: this process is alone
  std::vector<std::string> notices;        ///< to print once
};

/// For a process without a launcher of ours. Sets rank, world size, hosts, places, job id and threads in `environment`;
/// the rank also when it fails, so that one of them can speak for all. kInvalidArgument: tasks were started that cannot
/// meet.
Result<TaskRanks> meet_tasks(RankEnvironment& environment, const std::map<std::string, std::string>& variables);

/// For a command that is meant to be there once: refuses where a workload manager started several of this process.
Status check_is_only_task(const std::string& command, const std::map<std::string, std::string>& variables);

/// "n1: rank 0-1; n2: rank 2-3"
std::string placement_text(const std::vector<std::string>& hosts);
int num_hosts(const std::vector<std::string>& hosts);

}  // namespace altiplano
