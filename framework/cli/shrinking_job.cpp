#include "framework/cli/shrinking_job.hpp"

#include "framework/base/plural.hpp"
#include "framework/cli/local_ranks.hpp"
#include "framework/runtime/job.hpp"

namespace altiplano {

Result<ShrinkingJob> ShrinkingJob::open(const JobArguments& job, const TrainStart& start, const Options& options,
                                        int nodes, int min_nodes, int ranks_per_node) {
  ShrinkingJob shrinking;
  shrinking.job_ = job;
  shrinking.start_ = start;
  shrinking.nodes_ = nodes;
  shrinking.min_nodes_ = min_nodes;
  shrinking.tasks_ = ranks_per_node;
  ALTIPLANO_ASSIGN(const BatchSizes batch, job_batch(options, nodes * ranks_per_node));
  shrinking.global_batch_ = batch.global;
  return shrinking;
}

/// As the job file says for all nodes that are to train.
JobArguments ShrinkingJob::job_of(int num_ranks) const {
  JobArguments job = job_;
  if (num_ranks >= nodes_ * tasks_) return job;
  for (const char* free :
       {"parallel.data_parallel_size", "train.gradient_accumulation_steps", "train.micro_batch_size"})
    job.overrides.push_back(std::string(free) + "=auto");
  job.overrides.push_back(fmt::format("train.global_batch_size={}", global_batch_));
  return job;
}

Status ShrinkingJob::check_plan(int num_ranks) const {
  ALTIPLANO_ASSIGN(JobConfig config, load_training_job(job_of(num_ranks), start_, false));
  JobRequest request;
  request.num_ranks = num_ranks;
  request.takes_cached_plan = true;
  request.only_first_of_stage = true;
  return prepare_job(std::move(config), request).status();
}

std::vector<std::string> ShrinkingJob::divide_over(std::vector<std::string> hosts, const Story& story) const {
  for (; static_cast<int>(hosts.size()) >= min_nodes_; hosts.pop_back()) {
    if (static_cast<int>(hosts.size()) >= nodes_) return hosts;  // as the job file says, which the ranks judge
    const Status status = check_plan(num_ranks(hosts));
    if (status.is_ok()) return hosts;
    story.tell(
        fmt::format("no plan for {}: {}", counted(static_cast<int64_t>(hosts.size()), "node"), status.to_string()));
  }
  return {};
}

std::vector<std::string> ShrinkingJob::command(const std::vector<std::string>& hosts, bool is_first) const {
  std::vector<std::string> command = job_command("train", job_of(num_ranks(hosts)));
  TrainStart start = start_;
  if (!is_first) start.resume = "auto";
  add_start_options(command, start);
  return command;
}

}  // namespace altiplano
