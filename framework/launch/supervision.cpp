#include "framework/launch/supervision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "framework/base/plural.hpp"
#include "framework/base/status.hpp"
#include "framework/base/text.hpp"

namespace altiplano {
namespace {

int stopped_early_code() {
  return exit_code_of(StatusCode::kStoppedEarly);
}

/// Refusals of the job, of its plan, of its checkpoints, and divergence: no start on other nodes would do better.
bool is_final(int exit_code) {
  constexpr StatusCode kFinal[] = {StatusCode::kInvalidArgument, StatusCode::kInfeasible, StatusCode::kNoCheckpoint,
                                   StatusCode::kDiverged};
  return std::ranges::any_of(kFinal, [&](StatusCode code) { return exit_code_of(code) == exit_code; });
}

/// Why a start ended that no agreement of its ranks ended.
std::string cause_of(const StartEnd& end, const std::string& lost) {
  if (!lost.empty()) return "missing: " + lost;
  if (!end.ended_for.empty()) return "no rank's node is missing, " + end.ended_for;
  return fmt::format("no rank's node is missing, srun's exit code is {}", end.exit_code);
}

std::string lost_of(const std::vector<std::string>& used, const std::set<std::string>& lost) {
  std::vector<std::string> names;
  for (const std::string& host : used)
    if (lost.contains(host)) names.push_back(host);
  return join(names, ", ");
}

}  // namespace

std::vector<std::string> hosts_for_start(const std::vector<std::string>& allocated, const std::set<std::string>& lost,
                                         int nodes) {
  std::vector<std::string> hosts;
  for (const std::string& host : allocated)
    if (!lost.contains(host) && static_cast<int>(hosts.size()) < nodes) hosts.push_back(host);
  return hosts;
}

std::optional<Decision> decide_before(const std::vector<std::string>& hosts, bool is_asked_to_stop) {
  if (!hosts.empty() && !is_asked_to_stop) return std::nullopt;
  const char* why = hosts.empty() ? "too few nodes are left" : "asked to stop before the ranks were started";
  return Decision{NextMove::kRequeue, {}, stopped_early_code(), 0, why};
}

Decision decide_after(const SupervisionLimits& limits, const StartEnd& end, const std::vector<std::string>& allocated,
                      const std::vector<std::string>& used, int restarts) {
  Decision decision;
  if (end.has_record && end.is_done) {
    decision.move = NextMove::kDone;
    decision.reason = "all ranks agreed that the run is done";
    return decision;
  }
  decision.exit_code = stopped_early_code();
  if (end.has_record) {
    decision.move = NextMove::kRequeue;
    decision.reason = "all ranks agreed that they have saved and stop";
    return decision;
  }
  const std::string lost = lost_of(used, end.lost);
  if (lost.empty() && end.ended_for.empty() && is_final(end.exit_code)) {
    decision.exit_code = end.exit_code;
    decision.reason = fmt::format("a start that ends with exit code {} would end alike again", end.exit_code);
    return decision;
  }
  decision.restarts = end.made_progress ? 0 : restarts + 1;
  decision.hosts = hosts_for_start(allocated, end.lost, limits.nodes);
  const auto left = static_cast<int>(decision.hosts.size());
  const std::string what = cause_of(end, lost);
  if (left < limits.min_nodes || end.is_asked_to_stop) {
    decision.move = NextMove::kRequeue;
    decision.reason = end.is_asked_to_stop ? what + "; the job was asked to stop"
                                           : fmt::format("{}; {} left, slurm.min_nodes is {}", what,
                                                         counted(left, "node"), limits.min_nodes);
    return decision;
  }
  if (lost.empty() && decision.restarts > limits.max_restarts) {
    decision.exit_code = end.exit_code == 0 ? exit_code_of(StatusCode::kRuntimeFailure) : end.exit_code;
    decision.reason = fmt::format("{}; {} in a row brought no new checkpoint, slurm.max_restarts is {}", what,
                                  counted(restarts + 1, "start"), limits.max_restarts);
    return decision;
  }
  decision.move = NextMove::kRestart;
  decision.reason = what;
  return decision;
}

}  // namespace altiplano
