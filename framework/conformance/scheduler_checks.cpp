// Schedulers: workload managers. What they say of an allocation is complete, for every environment.
#include <algorithm>
#include <numeric>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/conformance/check.hpp"

namespace altiplano::conformance {
namespace {

using Environment = std::map<std::string, std::string>;

Environment own_environment() {
  Environment environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (const size_t at = text.find('='); at != std::string::npos)
      environment[text.substr(0, at)] = text.substr(at + 1);
  }
  return environment;
}

/// Environments as hostile or odd shells make them.
std::vector<Environment> odd_environments() {
  return {{},
          {{"PATH", ""}},
          {{"SLURM_JOB_ID", ""}, {"SLURM_NTASKS", "many"}, {"SLURM_JOB_NODELIST", "n[1-"}},
          {{"SLURM_JOB_ID", "-7"}, {"SLURM_JOB_NODELIST", std::string(100'000, '[')}},
          {{"PBS_JOBID", "1.x"}, {"LSB_JOBID", "\x01"}}};
}

Status check_allocation(const Allocation& allocation, int ranks) {
  if (allocation.job_id.empty()) return broken("{}: no job id", counted(ranks, "rank"));
  const bool is_safe = std::all_of(allocation.job_id.begin(), allocation.job_id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (!is_safe) return broken("job id '{}' is not safe in file names", allocation.job_id);
  if (allocation.hosts.empty() || allocation.hosts.size() != allocation.ranks_per_host.size())
    return broken("{}: {} and {} of ranks", counted(ranks, "rank"),
                  counted(static_cast<int64_t>(allocation.hosts.size()), "host"),
                  counted(static_cast<int64_t>(allocation.ranks_per_host.size()), "count"));
  for (const std::string& host : allocation.hosts)
    if (trim(host).empty()) return broken("{}: a host without a name", counted(ranks, "rank"));
  const int sum = std::accumulate(allocation.ranks_per_host.begin(), allocation.ranks_per_host.end(), 0);
  const int least = *std::min_element(allocation.ranks_per_host.begin(), allocation.ranks_per_host.end());
  if (sum != ranks || least < 0)
    return broken("{} {} asked for, {} {} placed", counted(ranks, "rank"), plural(ranks, "was", "were"), sum,
                  plural(sum, "is", "are"));
  if (allocation.cpus_per_rank < 1)
    return broken("{}: {} per rank", counted(ranks, "rank"), counted(allocation.cpus_per_rank, "processor"));
  if (allocation.restart_count < 0) return broken("a restart count of {}", allocation.restart_count);
  return Status::ok();
}

Finding check_detection(Scheduler& scheduler) {
  std::vector<std::string> answers;
  for (const Environment& environment : odd_environments()) {
    const bool first = scheduler.detect(environment), second = scheduler.detect(environment);
    if (first != second) return broken("detect() of one environment said yes and no");
    answers.emplace_back(first ? "yes" : "no");
  }
  return "odd environments: " + join(answers, ", ");
}

Finding check_allocations(Scheduler& scheduler) {
  int num_given = 0, num_refused = 0;
  std::vector<Environment> environments = odd_environments();
  environments.push_back(own_environment());
  for (const Environment& environment : environments)
    for (int ranks : {1, 2, 3, 8, 1000}) {
      auto allocation = scheduler.allocation(environment, ranks);
      ++(allocation.is_ok() ? num_given : num_refused);
      if (allocation.is_ok()) ALTIPLANO_RETURN_IF_ERROR(check_allocation(*allocation, ranks));
      if (!allocation.is_ok() && allocation.status().message().empty()) return broken("a refusal without a word");
    }
  return fmt::format("{} given, {} refused", num_given, num_refused);
}

Finding check_no_ranks(Scheduler& scheduler) {
  for (int ranks : {0, -3}) {
    auto allocation = scheduler.allocation(own_environment(), ranks);
    if (allocation.is_ok()) return broken("{} ranks were given an allocation", ranks);
  }
  return "0 and -3 ranks refused";
}

}  // namespace

std::vector<Check> scheduler_checks() {
  return {check_of<Scheduler>("any environment is detected or not, always the same", check_detection),
          check_of<Scheduler>("allocations place every rank, or are refused", check_allocations),
          check_of<Scheduler>("fewer than one rank is refused", check_no_ranks)};
}

}  // namespace altiplano::conformance
