#pragma once
// ShrinkingJob: a job file's run on as many nodes as there are. With fewer ranks than at first the number of replicas
// follows the ranks; tensor and pipeline degrees and the global batch stay what they were.
#include <cstdint>
#include <string>
#include <vector>

#include "framework/cli/job_arguments.hpp"
#include "framework/launch/story.hpp"

namespace altiplano {

class ShrinkingJob {
 public:
  /// For `nodes` nodes with `ranks_per_node` at first; never with fewer than `min_nodes`.
  static Result<ShrinkingJob> open(const JobArguments& job, const TrainStart& start, const Options& options, int nodes,
                                   int min_nodes, int ranks_per_node);
  /// The largest number of these hosts over which the model can be divided; empty: none that is not too small. Why
  /// more will not do goes to `story`.
  std::vector<std::string> divide_over(std::vector<std::string> hosts, const Story& story) const;
  /// Of each rank on these hosts. `is_first`: where to begin is what the job says; else from its own checkpoints.
  std::vector<std::string> command(const std::vector<std::string>& hosts, bool is_first) const;
  int num_ranks(const std::vector<std::string>& hosts) const { return static_cast<int>(hosts.size()) * tasks_; }

 private:
  JobArguments job_of(int num_ranks) const;
  Status check_plan(int num_ranks) const;

  JobArguments job_;
  TrainStart start_;
  int nodes_ = 1, min_nodes_ = 1, tasks_ = 1;
  int64_t global_batch_ = 0;
};

}  // namespace altiplano
