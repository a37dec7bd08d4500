#include "framework/cli/agent_steps.hpp"

namespace altiplano {

Status AgentSteps::start(const std::vector<std::string>& hosts) {
  ALTIPLANO_ASSIGN(ChildProcess process, start_(hosts));
  steps_.push_back({std::move(process), hosts});
  return Status::ok();
}

void AgentSteps::tend(const std::set<std::string>& lost) {
  constexpr int kMostTries = 5;
  std::vector<std::string> ended;
  for (Step& step : steps_)
    if (step.process.exit_code()) ended.insert(ended.end(), step.hosts.begin(), step.hosts.end());
  std::erase_if(steps_, [](Step& step) { return step.process.exit_code().has_value(); });
  for (const std::string& host : ended)
    if (!lost.contains(host) && ++tries_[host] <= kMostTries) (void)start({host});
}

}  // namespace altiplano
