// The trainer and its checkpoints: what it starts from, what it saves.
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/config/provenance.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/runtime/agreement.hpp"
#include "framework/runtime/checkpoint_space.hpp"
#include "framework/runtime/end_record.hpp"
#include "framework/runtime/rank_state.hpp"
#include "framework/runtime/resume.hpp"
#include "framework/runtime/trainer.hpp"

namespace altiplano {

namespace {

void note(const std::string& text) {
  flush_out();
  print_err("note: {}\n", text);
}

/// What a run can go on from when its last save failed.
std::string last_checkpoint_text(const std::string& directory) {
  const auto folders = list_step_folders(directory);
  return folders.empty() ? "there is no checkpoint to go on from"
                         : fmt::format("the last checkpoint is that of step {}", folders.front().step);
}

}  // namespace

/// Under a supervisor a lock that is held is that of a start that it has given up, whose node may be cut off: it is
/// gone round, and the lease keeps that start from doing harm.
Result<std::optional<FileLock>> Trainer::take_lock(const std::string& path, const std::string& owner,
                                                   const std::string& key) {
  auto lock = FileLock::take(path, owner, key);
  const bool is_given_up = lock.status().code() == StatusCode::kInvalidArgument && !environment_.start_name.empty();
  if (is_given_up) {
    note(fmt::format("{} (the supervisor has given that start up; it saves nothing more)", lock.status().message()));
    return std::optional<FileLock>();
  }
  if (!lock.is_ok()) return lock.status();
  if (!lock->notice().empty()) note(lock->notice());
  return std::optional<FileLock>(std::move(*lock));
}

/// First rank: takes the run's folder for this job, and says when its checkpoints will not all fit.
Status Trainer::take_folder() {
  const std::string run = options_.get_string("run.dir");
  std::error_code error;
  std::filesystem::create_directories(run, error);
  const std::string owner = fmt::format("job {}, process {}", environment_.job_id, ::getpid());
  ALTIPLANO_ASSIGN(run_lock_, take_lock(run + "/lock", owner, "run.dir"));
  // Runs of two folders may name one folder of checkpoints.
  const std::string checkpoints = options_.get_string("checkpoint.dir");
  std::filesystem::create_directories(checkpoints, error);
  ALTIPLANO_ASSIGN(checkpoint_lock_, take_lock(checkpoints + "/.lock", owner, "checkpoint.dir"));
  ALTIPLANO_ASSIGN(const std::optional<std::string> too_small, check_space(forecast_space(job_)));
  if (too_small) note(*too_small);
  return Status::ok();
}

/// First rank, of the checkpoint to start from; nothing is read yet.
Status Trainer::check_start(const Checkpoint& checkpoint) {
  ALTIPLANO_ASSIGN(notices_, check_resume(job_, *source_, checkpoint));
  return Status::ok();
}

/// Finds the state to start from and opens what the first rank writes.
Status Trainer::start(Rendezvous& rendezvous) {
  checkpoint_directory_ = options_.get_string("checkpoint.dir");
  rate_ = {options_.get_string("lr_scheduler.name"), options_.get_float("optimizer.lr"),
           options_.get_float("lr_scheduler.min_lr"), options_.get_int("lr_scheduler.warmup_steps"),
           options_.get_int("lr_scheduler.decay_steps")};
  Status folder = is_first_rank() ? take_folder() : Status::ok();
  ResumeRequest request;
  request.directory = checkpoint_directory_;
  request.resume = options_.get_string("train.resume");
  request.check = [this](const Checkpoint& checkpoint) { return check_start(checkpoint); };
  request.restore = [this](const Checkpoint& checkpoint) { return restore_state(model_->executor(), checkpoint); };
  request.ready = folder;
  ALTIPLANO_ASSIGN(const FoundCheckpoint found, restore_together(rendezvous, request));
  // What a checkpoint does not hold (gradients, totals) is zero as it was allocated.
  if (!found.checkpoint) ALTIPLANO_RETURN_IF_ERROR(model_->executor().initialize(job_.graph->seed));
  ALTIPLANO_RETURN_IF_ERROR(found.checkpoint ? go_on_from(found) : begin_run());
  ALTIPLANO_RETURN_IF_ERROR(take_lease(rendezvous));
  ALTIPLANO_RETURN_IF_ERROR(barrier());
  summary_.first_step = step_ + 1;
  budget_ = TimeBudget(environment_.end_time, checkpoint_bytes(job_));
  return is_first_rank() ? open_outputs(rendezvous.host()) : Status::ok();
}

Status Trainer::begin_run() {
  run_id_ = fmt::format("{:016x}", fingerprint(environment_.job_id + options_.to_string()));
  return check_no_other_run(checkpoint_directory_, run_id_);
}

/// The first rank takes the lease; all ranks write under its number.
Status Trainer::take_lease(Rendezvous& rendezvous) {
  constexpr auto kDeadline = std::chrono::minutes(5);
  constexpr const char* kKey = "checkpoint/lease";
  if (is_first_rank()) {
    auto lease = EpochLease::take(checkpoint_directory_,
                                  fmt::format("job {}, host {}", environment_.job_id, short_host_name()), attempt_);
    if (lease.is_ok()) lease_ = *lease;
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.put(kKey, fmt::to_string(lease_.epoch())));
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(kDeadline));
    attempt_ = lease_.epoch();
    return lease.status();
  }
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(kDeadline));
  ALTIPLANO_ASSIGN(const std::string text, rendezvous.get(RankId(0), kKey));
  attempt_ = parse_int(text).value_or(0);
  if (attempt_ > 0) return Status::ok();
  return {StatusCode::kCancelled, "rank 0 failed first: it got no lease on " + checkpoint_directory_};
}

Status Trainer::go_on_from(const FoundCheckpoint& found) {
  const CheckpointInfo& info = found.checkpoint->manifest().info;
  step_ = info.step;
  samples_ = info.samples_consumed;
  run_id_ = info.run_id;
  resumed_from_ = found.checkpoint->path();
  if (!is_first_rank()) return Status::ok();
  attempt_ = next_attempt(checkpoint_directory_, info);
  for (const SkippedCheckpoint& skipped : found.skipped)
    note(fmt::format("checkpoint {} skipped: {}", skipped.path, skipped.reason));
  for (const SkippedCheckpoint& unfinished : found.unfinished)
    note(fmt::format("checkpoint step {} skipped: {}", unfinished.step, unfinished.reason));
  for (const std::string& notice : notices_) note(fmt::format("resuming from step {}: {}", step_, notice));
  return Status::ok();
}

/// First rank, after every rank has its state: what dead jobs left goes, metrics and step lines begin.
Status Trainer::open_outputs(const std::string& host) {
  remove_unfinished(checkpoint_directory_);
  const StartFacts facts{host,
                         environment_.job_id,
                         environment_.world_size,
                         !environment_.rendezvous.empty(),
                         job_.plan.to_yaml(),
                         job_.plan.file};
  if (auto kept = write_provenance(job_.config, facts); !kept)  // a full disk ends no run that can train
    note(fmt::format("provenance is not kept: {}", kept.status().to_string()));
  ALTIPLANO_ASSIGN(const OpenedMetrics metrics,
                   metrics_.open(options_.get_string("run.dir") + "/metrics.jsonl", step_));
  const std::string lines = counted(metrics.num_abandoned, "line");
  if (!metrics.aside.empty())
    note(fmt::format("metrics.jsonl: {} of an earlier beginning set aside in {}", lines, metrics.aside));
  else if (metrics.num_abandoned > 0)
    note(fmt::format("metrics.jsonl: {} of steps after {} removed: the run goes on from there", lines, step_));
  progress_ =
      std::make_unique<Progress>(step_ + 1, options_.get_int("train.max_steps"), options_.get_int("train.log_every"),
                                 environment_.terminal_columns, model_->program().peak());
  return Status::ok();
}

/// What a later start wants to know of this one.
Result<CheckpointInfo> Trainer::checkpoint_info() const {
  CheckpointInfo info;
  info.step = step_;
  info.samples_consumed = samples_;
  info.world_size = environment_.world_size;
  info.attempt = attempt_;
  info.run_id = run_id_;
  info.model_fingerprint = model_fingerprint(options_);
  info.architecture = model_architecture(options_);
  info.plan = job_.plan.to_yaml();
  ALTIPLANO_ASSIGN(const Settings settings, training_settings(job_, *source_));
  info.state = state_with(settings);
  return info;
}

/// A save that fails on any rank (a full disk) leaves the older checkpoints and costs no training: all ranks know of it
/// and go on, and the next one is tried at its time. The last one has to succeed.
Status Trainer::save() {
  report_.set(RankPhase::kSaving, step_);
  const Agreement saved = try_save();
  if (saved.status.is_ok() || !saved.is_agreed) return saved.status;
  if (saved.status.code() == StatusCode::kCancelled) return saved.status;
  if (is_first_rank()) discard_unfinished(checkpoint_directory_, step_, attempt_);
  const std::string why = fmt::format(
      "{}; a checkpoint needs {}, {} are free in {}", saved.status.to_string(), to_string(checkpoint_bytes(job_)),
      to_string(free_bytes_at(checkpoint_directory_).value_or(Bytes(0))), checkpoint_directory_);
  if (summary_.stopped_early || step_ == options_.get_int("train.max_steps"))
    return {saved.status.code(), fmt::format("{}; {}", why, last_checkpoint_text(checkpoint_directory_))};
  if (is_first_rank())
    note(fmt::format("{}; training goes on, the next save is at step {}", why,
                     step_ + options_.get_int("checkpoint.every_steps")));
  return Status::ok();
}

/// Every rank writes its shard; the first rank publishes when all are there. The same on all ranks.
Agreement Trainer::try_save() {
  const auto begin = std::chrono::steady_clock::now();
  if (is_first_rank()) discard_unfinished(checkpoint_directory_, step_, attempt_);
  if (const Agreement ready = agree_on_save(Status::ok()); !ready.is_agreed) return ready;
  auto state = SavedState::take(model_->executor());
  const Agreement written = agree_on_save(
      state.is_ok() ? save_shard(checkpoint_directory_, step_, environment_.rank.value, state->parts(), attempt_)
                    : state.status());
  if (!written.status.is_ok()) return written;
  return agree_on_save(is_first_rank() ? publish(begin) : Status::ok());
}

Agreement Trainer::agree_on_save(const Status& mine) {
  return agree_with_all(
      mine.is_ok() ? mine : Status(mine.code(), fmt::format("step {} not saved: {}", step_, mine.to_string())));
}

Agreement Trainer::agree_with_all(const Status& mine) {
  return agree(model_->communicator(), model_->executor().communicator_group(GroupId(0)), mine,
               names_of_ranks({environment_.rank.value}, short_host_name()));
}

/// All ranks have come to the end of this start: only then it is written down, and only that counts as an end. They
/// leave when it is: the first that does with another exit code than 0 makes a launcher end the others.
Status Trainer::record_end() {
  ALTIPLANO_RETURN_IF_ERROR(agree_with_all(Status::ok()).status);
  ALTIPLANO_RETURN_IF_ERROR(agree_with_all(is_first_rank() ? write_end() : Status::ok()).status);
  report_.set(RankPhase::kDone, step_);
  return Status::ok();
}

Status Trainer::write_end() {
  ALTIPLANO_RETURN_IF_ERROR(lease_.check());
  EndRecord record;
  record.start = environment_.start_name.empty() ? environment_.job_id : environment_.start_name;
  record.is_done = !summary_.stopped_early;
  record.step = step_;
  record.ranks = environment_.world_size;
  const Status written = write_end_record(options_.get_string("run.dir"), record);
  if (written.is_ok() || !environment_.start_name.empty()) return written;
  note(fmt::format("the end of the run is not recorded: {}", written.to_string()));  // nobody waits for it
  return Status::ok();
}

Status Trainer::publish(std::chrono::steady_clock::time_point begin) {
  ALTIPLANO_ASSIGN(const CheckpointInfo info, checkpoint_info());
  ALTIPLANO_ASSIGN(const PublishReport report, publish_checkpoint(checkpoint_directory_, info, keep_rule(options_),
                                                                  [this] { return lease_.check(); }));
  std::vector<std::string> kept;
  for (int64_t step : report.kept) kept.push_back(std::to_string(step));
  Seconds took(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  progress_->note(fmt::format("checkpoint step {} saved in {} ({}), kept {}", step_, to_string(took),
                              to_string(Bytes(report.bytes)), join(kept, ", ")));
  return Status::ok();
}

}  // namespace altiplano
