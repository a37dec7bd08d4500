#pragma once
// The start of a job of several ranks: what is refused once, for all of them, and how ranks that no launcher of ours
// started come to one plan.
#include <functional>
#include <string>

#include "framework/api/comm.hpp"
#include "framework/launch/allocation.hpp"
#include "framework/runtime/job.hpp"
#include "framework/runtime/output_folders.hpp"

namespace altiplano {

/// What can be refused is refused here, once, before a rank trains: plan, data, a missing checkpoint, folders that
/// cannot be written. Prints notices, gives ranks their slots, proves the plan and chooses the kernels.
Result<Job> prepare_for_ranks(JobConfig config, const JobRequest& request, int num_hosts,
                              RunFolder folder = RunFolder::kMade);

/// run_end() under the job's own end, for which the workload manager is asked when the run's limit wants to know.
/// Prints a notice when it does not answer.
Result<int64_t> end_of_run(const Options& options, const JobAllocation& job, double started);

/// What the first rank has come to.
struct FirstRanksWord {
  Status status;     ///< of `make`
  std::string text;  ///< what it made
};
/// Collective: the first rank calls `make`, all get what came of it. A Status of its own when they could not meet.
Result<FirstRanksWord> hear_first_rank(Rendezvous& rendezvous, const std::function<Result<std::string>()>& make);

}  // namespace altiplano
