#pragma once
// What the workload manager gave this job: asked of the scheduler plugin that finds its environment.
#include <map>
#include <string>
#include <vector>

#include "framework/api/scheduler.hpp"

namespace altiplano {

struct JobAllocation {
  std::string scheduler;  ///< "scheduler/local"
  Allocation allocation;
};

/// Variables of this process.
std::map<std::string, std::string> environment_variables();

/// The schedulers on the search path are asked in order of their names, those that detect even an empty environment
/// last: they serve when no workload manager is there. Fails with the scheduler's own words, or when there is none.
Result<JobAllocation> find_allocation(const std::map<std::string, std::string>& environment, int ranks);

struct FoundScheduler {
  std::string name;
  const Scheduler* scheduler = nullptr;  ///< lives as long as the process
};
/// Which it is, under the same rules.
Result<FoundScheduler> find_scheduler(const std::map<std::string, std::string>& environment);

/// When the job will be ended, in seconds since 1970; 0: never, or nobody says. Where the environment does not say it
/// the workload manager is asked, and given some seconds; that it did not answer goes to `notices`.
int64_t end_of_job(const JobAllocation& job, std::vector<std::string>& notices);

/// Of the scheduler that finds the environment; no tasks where none does.
Result<Tasks> find_tasks(const std::map<std::string, std::string>& environment);

}  // namespace altiplano
