#pragma once
// Scheduler plugins: workload managers (how a job reaches nodes), never pipeline schedules.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/api/plugin.h"
#include "framework/base/status.hpp"

namespace altiplano {

/// What a workload manager gave this job.
struct Allocation {
  std::string job_id;
  std::vector<std::string> hosts;
  std::vector<int> ranks_per_host;
  int cpus_per_rank = 1;
  int restart_count = 0;
  int64_t end_time = 0;  ///< when the job will be ended, in seconds since 1970; 0: nobody says
};

/// What a workload manager says of the processes that it starts alike.
struct Tasks {
  int started = 0;    ///< together with this process, itself included; 0: it is none of them but a script or a shell
  int index = 0;      ///< of this process among them
  int planned = 1;    ///< what the allocation was asked for
  int cpus_each = 0;  ///< processors asked for each; 0: not said
  std::string how_to_start;                ///< the command that starts ranks so that they meet: "srun --mpi=pmix"
  std::vector<std::string> switches = {};  ///< above this process's host, outermost first; empty: not said
};

class Scheduler {
 public:
  static constexpr uint32_t kKind = ALTIPLANO_PLUGIN_SCHEDULER;
  static constexpr uint32_t kInterfaceVersion = 1;
  virtual ~Scheduler() = default;
  /// Whether this process runs under this workload manager, from the environment handed in.
  virtual bool detect(const std::map<std::string, std::string>& environment) const noexcept = 0;
  virtual Result<Allocation> allocation(const std::map<std::string, std::string>& environment,
                                        int ranks) const noexcept = 0;
  /// Of an environment that is detected. By default: processes are started by nobody.
  virtual Result<Tasks> tasks(const std::map<std::string, std::string>& /*environment*/) const noexcept {
    return Tasks{};
  }
};

}  // namespace altiplano
