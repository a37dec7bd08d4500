#include "framework/launch/allocation.hpp"

#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "framework/plugin/registry.hpp"

namespace altiplano {
namespace {

struct Candidate {
  bool detects_nothing;  ///< serves when nothing else does
  std::string name;
  const Scheduler* scheduler;
};

Result<std::vector<Candidate>> candidates() {
  PluginRegistry& registry = PluginRegistry::instance();
  std::vector<Candidate> found;
  for (const PluginInfo& info : registry.list()) {
    if (info.kind != Scheduler::kKind || !info.refusal.empty()) continue;
    ALTIPLANO_ASSIGN(const Scheduler* scheduler, registry.scheduler(info.name));
    found.push_back({scheduler->detect({}), info.name, scheduler});
  }
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.detects_nothing, a.name) < std::tie(b.detects_nothing, b.name);
  });
  return found;
}

}  // namespace

std::map<std::string, std::string> environment_variables() {
  std::map<std::string, std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (const size_t at = text.find('='); at != std::string::npos) variables[text.substr(0, at)] = text.substr(at + 1);
  }
  return variables;
}

Result<JobAllocation> find_allocation(const std::map<std::string, std::string>& environment, int ranks) {
  ALTIPLANO_ASSIGN(const FoundScheduler found, find_scheduler(environment));
  ALTIPLANO_ASSIGN(Allocation allocation, found.scheduler->allocation(environment, ranks));
  return JobAllocation{found.name, std::move(allocation)};
}

int64_t end_of_job(const JobAllocation& job, std::vector<std::string>& notices) {
  constexpr auto kLimit = std::chrono::seconds(20);
  if (job.allocation.end_time > 0) return job.allocation.end_time;
  const auto scheduler = PluginRegistry::instance().scheduler(job.scheduler);
  if (!scheduler.is_ok() || (*scheduler)->detect({})) return 0;  // nobody to ask
  const auto state = (*scheduler)->job_state(job.allocation.job_id, kLimit);
  if (state.is_ok()) return state->end_time;
  notices.push_back(fmt::format("nobody says when job {} will be ended: {}; give train.time_limit to be saved before",
                                job.allocation.job_id, state.status().to_string()));
  return 0;
}

Result<FoundScheduler> find_scheduler(const std::map<std::string, std::string>& environment) {
  ALTIPLANO_ASSIGN(const auto all, candidates());
  for (const Candidate& candidate : all)
    if (candidate.scheduler->detect(environment)) return FoundScheduler{candidate.name, candidate.scheduler};
  return invalid_argument("no scheduler plugin knows this environment; `altiplano plugins list` shows what was found");
}

Result<Tasks> find_tasks(const std::map<std::string, std::string>& environment) {
  ALTIPLANO_ASSIGN(const auto all, candidates());
  for (const Candidate& candidate : all)
    if (candidate.scheduler->detect(environment)) return candidate.scheduler->tasks(environment);
  return Tasks{};
}

}  // namespace altiplano
