#pragma once
// NodeWatch: the nodes of a supervised job, as heard of by heartbeats: an agent on each, who is lost, and the
// supervisor's own sign of life. What it finds out goes to the story.
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/cli/agent_steps.hpp"
#include "framework/launch/allocation.hpp"
#include "framework/launch/heartbeat.hpp"
#include "framework/launch/start_watch.hpp"
#include "framework/launch/story.hpp"

namespace altiplano {

/// A supervised job's place: what does not change while it runs.
struct SupervisedJob {
  std::string run_directory;  ///< absolute
  FoundScheduler scheduler;
  Allocation allocation;
  std::chrono::milliseconds deadline{10000};  ///< for a node to be heard of
};

/// Processes of a job's step; what they print besides their logs (srun's own words) goes to this process's stderr.
Result<ChildProcess> start_step(const Scheduler& scheduler, const StepRequest& request,
                                const std::vector<std::string>& environment);
/// The path of this program.
std::string own_program();

class NodeWatch {
 public:
  /// Listens, and starts an agent on every node. `job` and `story` must outlive it.
  static Result<std::unique_ptr<NodeWatch>> start(const SupervisedJob& job, const Story& story);
  /// A node whose agent does not come within a minute is none.
  void await_agents();
  /// What is due while nothing else is: the sign of life, agents that ended, strangers that knocked; takes a tick.
  void tend();
  /// Whether one of `hosts` is lost; says of each host of the job that fell silent that it is given up.
  bool note_silent(const std::vector<std::string>& hosts);
  /// Until each of the hosts was heard of or is given up: why a start ended may be a node that died.
  void await_news_of(const std::vector<std::string>& hosts);
  /// Whether the ranks of a start stand still: who does, see standing_still().
  std::string who_stands_still(const std::string& start, std::chrono::milliseconds limit) const;
  /// Ranks of this start that still live end at once; returns when those of nodes that are not lost are gone, at most
  /// some time later.
  void end_ranks(const std::string& start);
  const std::set<std::string>& lost() const { return lost_; }
  const HeartbeatServer& server() const { return *server_; }
  /// What processes need that are to be heard of.
  std::vector<std::string> environment() const;

 private:
  using Clock = std::chrono::steady_clock;
  NodeWatch(const SupervisedJob& job, const Story& story) : job_(job), story_(story) {}
  Result<ChildProcess> start_agents(const std::vector<std::string>& hosts) const;
  void give_up(const std::string& host, const std::string& why);

  const SupervisedJob& job_;
  const Story& story_;
  std::string secret_;
  std::unique_ptr<HeartbeatServer> server_;
  std::optional<AgentSteps> agents_;
  std::set<std::string> lost_;
  int64_t signs_ = 0;
  Clock::time_point last_sign_{};
};

}  // namespace altiplano
