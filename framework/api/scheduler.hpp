#pragma once
// Scheduler plugins: workload managers (how a job reaches nodes), never pipeline schedules.
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/api/plugin.h"
#include "framework/base/status.hpp"
#include "framework/options/option.hpp"

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

/// What a workload manager says of a job when it is asked.
struct JobState {
  std::string state;               ///< in its own word: "RUNNING"
  bool is_running = false;         ///< and nobody has ended, cancelled or requeued it
  int64_t end_time = 0;            ///< when it will be ended, in seconds since 1970; 0: no limit
  int restart_count = 0;           ///< how often it was requeued
  std::string first_host;          ///< where the job's script runs
  std::vector<std::string> hosts;  ///< that are the job's now
};

struct NodeState {
  std::string host;
  std::string state;       ///< in its own word: "DOWN*"
  bool is_usable = false;  ///< up, and it answers, as far as is known: a dead node may look well for minutes
};

/// Processes to start alike in a running job, beside what runs there already.
struct StepRequest {
  std::vector<std::string> hosts;
  int tasks_per_host = 1, cpus_per_task = 1;
  bool are_ranks = true;  ///< they meet (PMIx), and the first that fails ends all; else each is on its own
  std::string output;     ///< of each, a path in which {task} is its number, appended to; empty: the command's own
  std::vector<std::string> command;
};

/// A script that the workload manager is to run.
struct BatchRequest {
  std::string folder;                ///< absolute, where it runs
  std::string log_folder;            ///< what it and its job print, by attempt; exists
  std::string run_name;              ///< the job's name unless the section says another
  std::vector<std::string> command;  ///< what the script is for
  Options section;                   ///< the job file's section for the workload manager, without its name
};

struct Submission {
  std::string script;                      ///< path
  std::string after_job;                   ///< starts when that job has ended, however; empty: at once
  std::vector<std::string> options;        ///< of the workload manager's own command, as a person gives them
  std::chrono::milliseconds limit{60000};  ///< for an answer
};

class Scheduler {
 public:
  static constexpr uint32_t kKind = ALTIPLANO_PLUGIN_SCHEDULER;
  static constexpr uint32_t kInterfaceVersion = 2;
  virtual ~Scheduler() = default;
  /// Whether this process runs under this workload manager, from the environment handed in.
  virtual bool detect(const std::map<std::string, std::string>& environment) const noexcept = 0;
  virtual Result<Allocation> allocation(const std::map<std::string, std::string>& environment,
                                        int ranks) const noexcept = 0;
  /// Of an environment that is detected. By default: processes are started by nobody.
  virtual Result<Tasks> tasks(const std::map<std::string, std::string>& /*environment*/) const noexcept {
    return Tasks{};
  }

  // What follows asks the workload manager itself. kInvalidArgument where it has no such thing, as by default;
  // kPeerStuck when it does not answer in time.
  using Limit = std::chrono::milliseconds;
  virtual Result<JobState> job_state(const std::string& /*job_id*/, Limit /*limit*/) const noexcept {
    return has_no("jobs to ask about");
  }
  /// Of the hosts that it knows, in their order.
  virtual Result<std::vector<NodeState>> node_states(const std::vector<std::string>& /*hosts*/,
                                                     Limit /*limit*/) const noexcept {
    return has_no("nodes to ask about");
  }
  /// The command that starts the processes and ends when they have, for a process on a host of the job.
  virtual Result<std::vector<std::string>> step_command(const StepRequest& /*request*/) const noexcept {
    return has_no("steps");
  }
  /// Ends the job, this process with it, and starts it again later.
  virtual Status requeue(const std::string& /*job_id*/, Limit /*limit*/) const noexcept { return has_no("queue"); }
  /// The script's text, the same for the same request.
  virtual Result<std::string> batch_script(const BatchRequest& /*request*/) const noexcept {
    return has_no("batch scripts");
  }
  /// The job's id.
  virtual Result<std::string> submit(const Submission& /*submission*/) const noexcept { return has_no("queue"); }

 private:
  static Status has_no(const char* what) { return invalid_argument("this scheduler has no {}", what); }
};

}  // namespace altiplano
