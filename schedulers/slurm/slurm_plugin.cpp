#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "batch_script.hpp"
#include "framework/api/register.hpp"
#include "framework/api/scheduler.hpp"
#include "nodelist.hpp"
#include "queries.hpp"

namespace altiplano::slurm {
namespace {

using Environment = std::map<std::string, std::string>;

struct Variable {
  const char* name;
  std::string text;
};

/// The first of the variables that is there and not empty.
std::optional<Variable> first_of(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = environment.find(name);
    if (found != environment.end() && !found->second.empty()) return Variable{name, found->second};
  }
  return std::nullopt;
}

template <typename Integer>
Result<Integer> count_of(const Environment& environment, const char* name, Integer fallback) {
  const auto given = first_of(environment, {name});
  if (!given) return fallback;
  const std::string& text = given->text;
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return invalid_argument("scheduler slurm: {}={}; expected a number from 0 on", name, text);
  return value;
}

Result<std::vector<std::string>> hosts_of(const Environment& environment) {
  const auto text = first_of(environment, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (!text)
    return invalid_argument(
        "scheduler slurm: none of SLURM_STEP_NODELIST, SLURM_JOB_NODELIST is set; start "
        "inside a job (sbatch, salloc, srun)");
  return expand_nodelist(text->text, text->name);
}

/// Ranks per host: what Slurm planned if that is what was asked for; all of them on a single host.
Result<std::vector<int>> ranks_of(const Environment& environment, size_t num_hosts, int ranks) {
  if (ranks < 1) return invalid_argument("scheduler slurm: {} ranks; nearest legal value: 1", ranks);
  const auto text = first_of(environment, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (num_hosts == 1) return std::vector<int>{ranks};
  if (!text)
    return invalid_argument(
        "scheduler slurm: {} hosts but no SLURM_TASKS_PER_NODE; start the ranks with srun, or "
        "give --ntasks-per-node",
        num_hosts);
  ALTIPLANO_ASSIGN(auto tasks, expand_counts(text->text, text->name));
  if (tasks.size() != num_hosts)
    return invalid_argument("scheduler slurm: {}={} is for {} hosts, the node list has {}", text->name, text->text,
                            tasks.size(), num_hosts);
  const int planned = std::accumulate(tasks.begin(), tasks.end(), 0);
  if (planned != ranks)
    return invalid_argument(
        "scheduler slurm: {} ranks were asked for, Slurm gives {} tasks on {} hosts ({}); ask for {} "
        "ranks, or allocate with --ntasks={}",
        ranks, planned, num_hosts, text->text, planned, ranks);
  return tasks;
}

/// Tasks of a job's only host; several ranks of a launcher may run in one task. 1 when Slurm does not say.
Result<int> tasks_of_only_host(const Environment& environment) {
  const auto text = first_of(environment, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (!text) return 1;
  ALTIPLANO_ASSIGN(const auto tasks, expand_counts(text->text, text->name));
  return tasks.front();
}

/// Processors of a rank: those of a task shared out among its ranks, else those of the fullest host.
Result<int> cpus_of(const Environment& environment, const std::vector<int>& ranks) {
  ALTIPLANO_ASSIGN(const int given, count_of(environment, "SLURM_CPUS_PER_TASK", 0));
  if (given > 0 && ranks.size() > 1) return given;  // as many ranks as tasks
  if (given > 0) {
    ALTIPLANO_ASSIGN(const int tasks, tasks_of_only_host(environment));
    return static_cast<int>(std::max<int64_t>(1, int64_t{given} * tasks / ranks.front()));
  }
  const auto text = first_of(environment, {"SLURM_JOB_CPUS_PER_NODE"});
  if (!text) return 1;
  ALTIPLANO_ASSIGN(const auto processors, expand_counts(text->text, text->name));
  int least = processors.front() / ranks.front();
  for (size_t host = 0; host < std::min(processors.size(), ranks.size()); ++host)
    least = std::min(least, processors[host] / ranks[host]);
  return std::max(1, least);
}

/// Tasks that the job was made for. Without --ntasks Slurm tells a script the tasks of a node at most.
Result<int> planned_tasks(const Environment& environment) {
  if (first_of(environment, {"SLURM_NTASKS"})) return count_of(environment, "SLURM_NTASKS", 1);
  if (const auto text = first_of(environment, {"SLURM_TASKS_PER_NODE"})) {
    ALTIPLANO_ASSIGN(const auto tasks, expand_counts(text->text, text->name));
    return std::accumulate(tasks.begin(), tasks.end(), 0);
  }
  ALTIPLANO_ASSIGN(const int nodes, count_of(environment, "SLURM_NNODES", 1));
  ALTIPLANO_ASSIGN(const int tasks, count_of(environment, "SLURM_NTASKS_PER_NODE", 1));
  return nodes * tasks;
}

/// "spine.leaf1.n1" of the pattern "switch.switch.node": names up to the host, which may hold dots itself.
std::vector<std::string> switches_of(const Environment& environment) {
  const auto address = first_of(environment, {"SLURM_TOPOLOGY_ADDR"});
  const auto pattern = first_of(environment, {"SLURM_TOPOLOGY_ADDR_PATTERN"});
  std::vector<std::string> switches;
  if (!address || !pattern) return switches;
  size_t begin = 0;
  for (auto levels = std::ranges::count(pattern->text, '.'); levels > 0; --levels) {
    const size_t end = address->text.find('.', begin);
    if (end == std::string::npos) return {};
    switches.push_back(address->text.substr(begin, end - begin));
    begin = end + 1;
  }
  return switches;
}

/// srun alone sets a step's number; that of salloc's own shell is no step of tasks.
bool is_in_step(const Environment& environment) {
  constexpr const char* kInteractiveStep = "4294967290";
  const auto step = first_of(environment, {"SLURM_STEP_ID"});
  return step && step->text != kInteractiveStep;
}

class Slurm final : public Scheduler {
 public:
  bool detect(const Environment& environment) const noexcept override { return environment.count("SLURM_JOB_ID") > 0; }

  Result<Allocation> allocation(const Environment& environment, int ranks) const noexcept override {
    try {
      Allocation allocation;
      const auto job = first_of(environment, {"SLURM_JOB_ID"});
      if (!job)
        return invalid_argument("scheduler slurm: SLURM_JOB_ID is not set; start inside a job (sbatch, salloc, srun)");
      allocation.job_id = job->text;
      ALTIPLANO_ASSIGN(allocation.hosts, hosts_of(environment));
      ALTIPLANO_ASSIGN(allocation.ranks_per_host, ranks_of(environment, allocation.hosts.size(), ranks));
      ALTIPLANO_ASSIGN(allocation.cpus_per_rank, cpus_of(environment, allocation.ranks_per_host));
      ALTIPLANO_ASSIGN(allocation.restart_count, count_of(environment, "SLURM_RESTART_COUNT", 0));
      ALTIPLANO_ASSIGN(allocation.end_time, count_of<int64_t>(environment, "SLURM_JOB_END_TIME", 0));
      return allocation;
    } catch (const std::exception& e) {
      return runtime_failure("scheduler slurm: {}", e.what());
    }
  }

  Result<Tasks> tasks(const Environment& environment) const noexcept override {
    try {
      Tasks tasks;
      tasks.how_to_start = "srun --mpi=pmix";
      ALTIPLANO_ASSIGN(tasks.planned, planned_tasks(environment));
      ALTIPLANO_ASSIGN(tasks.cpus_each, count_of(environment, "SLURM_CPUS_PER_TASK", 0));
      if (!is_in_step(environment)) return tasks;
      const bool is_told = first_of(environment, {"SLURM_STEP_NUM_TASKS"}).has_value();
      ALTIPLANO_ASSIGN(tasks.started, count_of(environment, is_told ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", 1));
      ALTIPLANO_ASSIGN(tasks.index, count_of(environment, "SLURM_PROCID", 0));
      tasks.switches = switches_of(environment);
      return tasks;
    } catch (const std::exception& e) {
      return runtime_failure("scheduler slurm: {}", e.what());
    }
  }

  Result<JobState> job_state(const std::string& job_id, Limit limit) const noexcept override {
    return guarded<Result<JobState>>([&] { return ask_job(job_id, limit); });
  }
  Result<std::vector<NodeState>> node_states(const std::vector<std::string>& hosts,
                                             Limit limit) const noexcept override {
    return guarded<Result<std::vector<NodeState>>>([&] { return ask_nodes(hosts, limit); });
  }
  Result<std::vector<std::string>> step_command(const StepRequest& request) const noexcept override {
    return guarded<Result<std::vector<std::string>>>([&] { return make_step_command(request); });
  }
  Status requeue(const std::string& job_id, Limit limit) const noexcept override {
    return guarded<Status>([&] { return ask_requeue(job_id, limit); });
  }
  Result<std::string> batch_script(const BatchRequest& request) const noexcept override {
    return guarded<Result<std::string>>([&] { return make_batch_script(request); });
  }
  Result<std::string> submit(const Submission& submission) const noexcept override {
    return guarded<Result<std::string>>([&] { return ask_submit(submission); });
  }

 private:
  template <typename Answer, typename Body>
  static Answer guarded(Body body) noexcept {
    try {
      return body();
    } catch (const std::exception& e) {
      return runtime_failure("scheduler slurm: {}", e.what());
    }
  }
};

}  // namespace
}  // namespace altiplano::slurm

ALTIPLANO_REGISTER_PLUGIN(
    altiplano::Scheduler, altiplano::slurm::Slurm, "scheduler/slurm", "1.0.0", 0,
    "Slurm: the job from its environment; its end, its nodes, steps and queue by squeue, sinfo, srun and "
    "sbatch")
