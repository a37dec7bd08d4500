#pragma once
// Trainer: the training loop of one rank. Restore or initialise, then per step: run the Program, decide, show; validate
// and save on schedule; stop when any rank was asked to. All ranks take every decision alike, from totals that all
// have.
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "framework/checkpoint/lease.hpp"
#include "framework/checkpoint/restore.hpp"
#include "framework/launch/rank_board.hpp"
#include "framework/launch/rank_environment.hpp"
#include "framework/runtime/agreement.hpp"
#include "framework/runtime/batch_input.hpp"
#include "framework/runtime/job.hpp"
#include "framework/runtime/progress.hpp"
#include "framework/runtime/rank_model.hpp"
#include "framework/runtime/step_decision.hpp"
#include "framework/runtime/time_budget.hpp"
#include "framework/storage/file_lock.hpp"

namespace altiplano {

struct TrainSummary {
  int64_t steps_done = 0, first_step = 1;
  double loss = 0, validation_loss = 0;
  bool has_validation = false, stopped_early = false;
};

class Trainer {
 public:
  /// Collective, and no rank needs the rendezvous when it returns. `report`: told what the rank is doing.
  /// `stop_requested`: polled once per step. Everything but the rendezvous must outlive the trainer.
  static Result<std::unique_ptr<Trainer>> create(const Job& job, const RankEnvironment& environment,
                                                 Rendezvous& rendezvous, const RankReport& report,
                                                 std::function<bool()> stop_requested);
  ~Trainer();
  Result<TrainSummary> run();
  /// Tells the other ranks that this one failed.
  void abort(const Status& status);

 private:
  Trainer(const Job& job, const RankEnvironment& environment, const RankReport& report,
          std::function<bool()> stop_requested)
      : job_(job),
        options_(job.config.options),
        environment_(environment),
        report_(report),
        stop_requested_(std::move(stop_requested)) {}
  Status open(Rendezvous& rendezvous);
  Status start(Rendezvous& rendezvous);
  Status take_folder();
  Result<std::optional<FileLock>> take_lock(const std::string& path, const std::string& owner, const std::string& key);
  Status check_start(const Checkpoint& checkpoint);
  Status begin_run();
  Status take_lease(Rendezvous& rendezvous);
  Status go_on_from(const FoundCheckpoint& found);
  Status open_outputs(const std::string& host);
  Result<bool> step();
  bool time_is_over();
  Status validate_and_save();
  Status validate();
  Status save();
  Result<NotFinite> find_not_finite(const StepScalars& scalars);
  Agreement try_save();
  Agreement agree_on_save(const Status& mine);
  Agreement agree_with_all(const Status& mine);
  Status publish(std::chrono::steady_clock::time_point begin);
  Status record_end();
  Status write_end();
  Result<CheckpointInfo> checkpoint_info() const;
  Status check_divergence(const StepMetrics& metrics);
  Status report_memory();
  Status barrier();
  void show_banner(const std::string& comm, const std::string& host);
  bool is_first_rank() const { return environment_.rank.value == 0; }

  const Job& job_;
  const Options& options_;
  const RankEnvironment& environment_;
  const RankReport& report_;
  std::function<bool()> stop_requested_;
  std::unique_ptr<RankModel> model_;
  std::optional<BatchSource> source_;
  std::unique_ptr<BatchInput> input_;
  LearningRate rate_;
  MetricsFile metrics_;
  std::unique_ptr<Progress> progress_;
  TimeBudget budget_;  ///< of the first rank
  std::string checkpoint_directory_, run_id_;
  std::string resumed_from_;
  std::vector<std::string> notices_;                    ///< of the first rank: what has changed since the checkpoint
  std::optional<FileLock> run_lock_, checkpoint_lock_;  ///< of the first rank: one job at a time in either folder
  EpochLease lease_;                                    ///< of the first rank
  int64_t attempt_ = 1;                                 ///< of the run, on all ranks: the number of the lease
  int64_t step_ = 0, samples_ = 0, skipped_in_a_row_ = 0;
  TrainSummary summary_;
};

/// What refuses a job besides its plan: data that cannot be read or does not suit it, a checkpoint that is required and
/// missing.
Status check_can_start(const Job& job);

}  // namespace altiplano
