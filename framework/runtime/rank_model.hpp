#pragma once
// RankModel: a job's model on this rank, ready to run: device, kernels, proved program, communicator, executor. What
// training, evaluation and generation stand on.
#include <memory>
#include <string>

#include "framework/checkpoint/restore.hpp"
#include "framework/launch/rank_environment.hpp"
#include "framework/runtime/executor.hpp"
#include "framework/runtime/job.hpp"

namespace altiplano {

class RankModel {
 public:
  /// Collective. `job` must outlive it; the job's device is this rank's from now on. `fetch_logits`: for generation.
  static Result<std::unique_ptr<RankModel>> open(const Job& job, const RankEnvironment& environment,
                                                 Rendezvous& rendezvous, bool fetch_logits);
  /// Reads the parameters of a checkpoint of the same architecture, whatever plan saved it.
  Status load(const Checkpoint& checkpoint);
  Executor& executor() { return *executor_; }
  Communicator& communicator() { return *communicator_; }
  const Device& device() const { return device_->device(); }
  const Program& program() const { return program_; }
  const std::string& comm_name() const { return comm_name_; }  ///< of the plugin: "comm/shm"
  /// Tells the other ranks that this one failed.
  void abort(const Status& status);

 private:
  explicit RankModel(const Job& job) : job_(job) {}
  Status lower_again(const RankEnvironment& environment);
  Status prepare(const RankEnvironment& environment, Rendezvous& rendezvous, bool fetch_logits);

  const Job& job_;
  std::shared_ptr<JobDevice> device_;
  Program program_;
  std::string comm_name_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Executor> executor_;
};

/// Whatever degrees the job names, one rank has its own plan.
Status plan_for_one_rank(JobConfig& config);

/// The checkpoint to read: `path` (one, or a directory of them), or empty for the job's newest. Every byte is checked.
Result<Checkpoint> find_model_checkpoint(const Options& options, const std::string& path);

}  // namespace altiplano
