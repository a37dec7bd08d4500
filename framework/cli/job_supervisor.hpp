#pragma once
// JobSupervisor: keeps a run alive within one job. It starts the ranks as a step on the job's nodes, hears from an
// agent on every node, and when a start ends or a node falls silent it decides (framework/launch/supervision.hpp) what
// comes next: the same again on the nodes that are left, the queue, or the end.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/child_process.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/launch/allocation.hpp"
#include "framework/launch/heartbeat.hpp"
#include "framework/launch/story.hpp"
#include "framework/launch/supervision.hpp"

namespace altiplano {

struct SuperviseArguments {
  JobArguments job;
  TrainStart start;
  bool no_requeue = false;
};

/// The agents' steps: one for all nodes at first, then one for each node whose agent's step has ended.
class AgentSteps {
 public:
  using Start = std::function<Result<ChildProcess>(const std::vector<std::string>& hosts)>;
  explicit AgentSteps(Start start) : start_(std::move(start)) {}
  Status start(const std::vector<std::string>& hosts);
  /// Starts those again, but for `lost`, whose step has ended; each only a few times.
  void tend(const std::set<std::string>& lost);

 private:
  struct Step {
    ChildProcess process;
    std::vector<std::string> hosts;
  };
  Start start_;
  std::vector<Step> steps_;
  std::map<std::string, int> tries_;
};

class JobSupervisor {
 public:
  static Result<std::unique_ptr<JobSupervisor>> create(const SuperviseArguments& arguments);
  /// The exit code.
  Result<int> run();

 private:
  using Clock = std::chrono::steady_clock;
  explicit JobSupervisor(const SuperviseArguments& arguments) : arguments_(arguments) {}
  Status open();
  void await_agents();
  Result<StartEnd> start_ranks(const std::vector<std::string>& hosts);
  Status watch(ChildProcess& step, const std::vector<std::string>& hosts, StartEnd& end);
  void await_news_of(const std::vector<std::string>& hosts, Clock::time_point since);
  void tend();
  bool note_silent(const std::vector<std::string>& hosts);
  void follow_log(const std::string& path);
  void tell_errors(const std::string& folder, size_t num_ranks);
  Result<std::vector<std::string>> ranks_command(const std::vector<std::string>& hosts);
  std::vector<std::string> plan_for(std::vector<std::string> hosts);
  Status check_plan(int num_ranks, JobArguments job);
  std::vector<std::string> smaller_settings() const;
  int requeue(const Decision& decision);
  std::string start_name() const;
  int64_t newest_checkpoint() const;
  int rank_count(const std::vector<std::string>& hosts) const { return static_cast<int>(hosts.size()) * tasks_; }

  const SuperviseArguments& arguments_;
  Options options_;
  std::string run_directory_;
  FoundScheduler scheduler_;
  Allocation allocation_;
  int tasks_ = 1, cpus_ = 1;
  SupervisionLimits limits_;
  Clock::duration deadline_{};
  std::string secret_;
  std::unique_ptr<HeartbeatServer> server_;
  std::optional<AgentSteps> agents_;
  std::optional<Story> story_;
  std::set<std::string> lost_;
  int full_ranks_ = 0;  ///< of all nodes that are to train: with fewer the replicas change
  int64_t global_batch_ = 0;
  int num_starts_ = 0;
  bool is_stop_passed_on_ = false;
  size_t log_read_ = 0;  ///< bytes of the first rank's log that were shown
  int64_t signs_ = 0;
  Clock::time_point last_sign_{};
};

}  // namespace altiplano
