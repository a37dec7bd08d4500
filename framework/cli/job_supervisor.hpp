#pragma once
// JobSupervisor: keeps a run alive within one job. It starts the ranks as a step on the job's nodes, hears from an
// agent on every node (node_watch.hpp) and from every rank, and when a start ends, a node falls silent or a rank stands
// still it decides (framework/launch/start_watch.hpp, supervision.hpp) what comes next: the same again on the nodes
// that are left, the queue, or the end.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/child_process.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/cli/node_watch.hpp"
#include "framework/cli/rank_logs.hpp"
#include "framework/cli/shrinking_job.hpp"
#include "framework/launch/story.hpp"
#include "framework/launch/supervision.hpp"

namespace altiplano {

struct SuperviseArguments {
  JobArguments job;
  TrainStart start;
  bool no_requeue = false;
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
  void read_options(const Tasks& tasks);
  Result<StepRequest> ranks_request(const std::vector<std::string>& hosts, const RankLogs& logs) const;
  Result<ChildProcess> start_step_of(const StepRequest& request) const;
  Result<StartEnd> run_ranks(const std::vector<std::string>& hosts);
  void watch(ChildProcess& step, const std::vector<std::string>& hosts, RankLogs& logs, StartEnd& end);
  void end_step(ChildProcess& step) const;
  void tell_start(const std::vector<std::string>& hosts, int64_t newest_checkpoint) const;
  int end_with(const Decision& decision);
  int requeue(const Decision& decision);
  std::string start_name() const;
  int64_t newest_checkpoint() const;

  const SuperviseArguments& arguments_;
  Options options_;
  SupervisedJob place_;
  int tasks_ = 1, cpus_ = 1;
  SupervisionLimits limits_;
  std::chrono::milliseconds stall_limit_{};
  std::optional<Story> story_;
  std::optional<ShrinkingJob> job_;
  std::unique_ptr<NodeWatch> nodes_;
  int num_starts_ = 0;
  bool is_stop_passed_on_ = false;
};

}  // namespace altiplano
