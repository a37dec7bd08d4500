#pragma once
// The allocation of a job that no workload manager started: this host, as many ranks as asked, the processors of the
// affinity mask.
#include <string>

#include "framework/api/scheduler.hpp"

namespace altiplano::local {

/// Processors this process may run on (its affinity mask, which cpusets, taskset and containers narrow); at least 1.
int num_processors_allowed();

/// This host's name; fails with the system's reason.
Result<std::string> host_name();

/// Processors are shared out evenly, the remainder stays unused; more ranks than processors share them (1 each).
/// Refuses ranks < 1.
Result<Allocation> make_allocation(const std::string& job_id, const std::string& host, int processors, int ranks);

}  // namespace altiplano::local
