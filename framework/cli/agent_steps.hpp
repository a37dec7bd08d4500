#pragma once
// AgentSteps: the processes that start the agents: one step for all nodes at first, then one for each node whose
// agent's step has ended.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "framework/base/child_process.hpp"

namespace altiplano {

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

}  // namespace altiplano
