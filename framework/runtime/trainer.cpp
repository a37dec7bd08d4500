#include "framework/runtime/trainer.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "framework/base/text.hpp"
#include "framework/config/job_values.hpp"
#include "framework/config/provenance.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/program/lowering.hpp"
#include "framework/runtime/comm_choice.hpp"
#include "framework/runtime/job_data.hpp"
#include "framework/runtime/memory_report.hpp"
#include "framework/runtime/rank_state.hpp"

namespace altiplano {

namespace {

constexpr std::chrono::minutes kCheckDeadline{30};  // reading every byte of a checkpoint
constexpr const char* kChosen = "checkpoint";       // key of the first rank's choice

/// A notice to whoever watches; empty: none.
void tell(const std::string& text) {
  if (text.empty()) return;
  std::fflush(stdout);
  fmt::print(stderr, "note: {}\n", text);
}

Result<BatchSource> open_data(const Job& job) {
  return BatchSource::open(job_data_options(job));
}

Result<FoundCheckpoint> find_start(const Options& options, CheckLevel level) {
  return find_checkpoint(options.get_string("checkpoint.dir"), options.get_string("train.resume"), level);
}

}  // namespace

Status check_can_start(const Job& job) {
  ALTIPLANO_RETURN_IF_ERROR(open_data(job).status());
  const Options& options = job.config.options;
  ALTIPLANO_ASSIGN(const FoundCheckpoint found, find_start(options, CheckLevel::kSizes));
  if (!found.checkpoint) return Status::ok();
  return check_architecture(found.checkpoint->manifest().info, model_fingerprint(options), model_architecture(options));
}

Result<std::unique_ptr<Trainer>> Trainer::create(const Job& job, const RankEnvironment& environment,
                                                 Rendezvous& rendezvous, const RankReport& report,
                                                 std::function<bool()> stop_requested) {
  std::unique_ptr<Trainer> trainer(new Trainer(job, environment, report, std::move(stop_requested)));
  Status status = trainer->open(rendezvous);
  if (!status.is_ok()) {
    trainer->abort(status);
    return status;
  }
  return trainer;
}

Trainer::~Trainer() = default;

void Trainer::abort(const Status& status) {
  if (communicator_) communicator_->abort(status.to_string());
}

Status Trainer::open(Rendezvous& rendezvous) {
  auto& registry = PluginRegistry::instance();
  ALTIPLANO_ASSIGN(source_, open_data(job_));
  input_ = std::make_unique<BatchInput>(*source_, *job_.graph);
  std::string device_kind = options_.get_string("device.kind");
  ALTIPLANO_ASSIGN(DeviceBackend * backend, registry.device(device_kind));
  DeviceOptions device_options = job_device_options(options_, environment_.world_size);
  if (device_options.threads == 0) device_options.threads = environment_.threads;
  ALTIPLANO_ASSIGN(device_, backend->open(device_options));
  ALTIPLANO_ASSIGN(auto extensions, registry.ops());
  kernels_ = std::make_unique<KernelCache>(*device_, device_kind, extensions, job_.graph->seed);

  LoweringOptions lowering;
  lowering.workspace = [this](const Program& program, const ComputeInstruction& instruction) -> Result<int64_t> {
    if (program.rank != environment_.rank) return 0;  // other ranks make their own kernels
    ALTIPLANO_ASSIGN(Kernel * kernel, kernels_->get(program, instruction));
    return kernel->workspace_bytes();
  };
  ALTIPLANO_ASSIGN(auto programs,
                   lower(*job_.graph, job_.plan, job_.timetable, Binding::identity(job_.plan.num_slots()), lowering));
  ALTIPLANO_RETURN_IF_ERROR(verify_programs(programs));
  program_ = std::move(programs[environment_.rank.index()]);

  ALTIPLANO_ASSIGN(const std::string comm, choose_comm_backend(options_, environment_.world_size));
  ALTIPLANO_ASSIGN(CommBackend * comm_backend, registry.comm(comm));
  ALTIPLANO_ASSIGN(communicator_, comm_backend->connect(rendezvous, job_comm_options(options_)));
  ALTIPLANO_ASSIGN(executor_, Executor::create(program_, *device_, *communicator_, *kernels_));
  ALTIPLANO_RETURN_IF_ERROR(start(rendezvous));
  if (is_first_rank()) show_banner(comm.substr(comm.find('/') + 1), rendezvous.host());
  return Status::ok();
}

/// Takes the run's folder for this job, then looks for the newest sound checkpoint in it.
Result<std::optional<Checkpoint>> Trainer::find_and_lock() {
  const std::string run = options_.get_string("run.dir");
  std::error_code error;
  std::filesystem::create_directories(run, error);
  const std::string owner = fmt::format("job {}, process {}", environment_.job_id, ::getpid());
  ALTIPLANO_ASSIGN(run_lock_, FileLock::take(run + "/lock", owner));
  ALTIPLANO_ASSIGN(FoundCheckpoint found, find_start(options_, CheckLevel::kChecksums));
  for (const SkippedCheckpoint& skipped : found.skipped)
    fmt::print(stderr, "note: checkpoint {} skipped: {}\n", skipped.path, skipped.reason);
  return std::move(found.checkpoint);
}

/// The first rank looks at every byte and decides; all start from what it found sound.
Result<std::optional<Checkpoint>> Trainer::choose_checkpoint(Rendezvous& rendezvous) {
  std::optional<Checkpoint> chosen;
  Status status;
  if (is_first_rank()) {
    auto found = find_and_lock();
    status = found.status();
    if (found.is_ok()) chosen = std::move(*found);
    std::string word = status.is_ok() ? (chosen ? chosen->path() : "") : "!" + status.to_string();
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.put(kChosen, word));
  }
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(kCheckDeadline));
  if (is_first_rank()) {
    if (!status.is_ok()) return status;
    return chosen;
  }
  ALTIPLANO_ASSIGN(std::string word, rendezvous.get(RankId(0), kChosen));
  if (word.empty()) return chosen;
  if (word[0] == '!') return Status(StatusCode::kCancelled, "rank 0 failed first: " + word.substr(1));
  ALTIPLANO_ASSIGN(chosen, Checkpoint::open(word, CheckLevel::kSizes));
  return chosen;
}

/// Finds the state to start from and opens what the first rank writes.
Status Trainer::start(Rendezvous& rendezvous) {
  checkpoint_directory_ = options_.get_string("checkpoint.dir");
  rate_ = {options_.get_string("lr_scheduler.name"), options_.get_float("optimizer.lr"),
           options_.get_float("lr_scheduler.min_lr"), options_.get_int("lr_scheduler.warmup_steps"),
           options_.get_int("lr_scheduler.decay_steps")};
  ALTIPLANO_ASSIGN(const std::optional<Checkpoint> checkpoint, choose_checkpoint(rendezvous));
  ALTIPLANO_RETURN_IF_ERROR(executor_->initialize(job_.graph->seed));
  if (checkpoint) {
    ALTIPLANO_RETURN_IF_ERROR(restore(*checkpoint));
  } else {
    run_id_ = fmt::format("{:016x}", fingerprint(environment_.job_id + options_.to_string()));
    ALTIPLANO_RETURN_IF_ERROR(check_no_other_run(checkpoint_directory_, run_id_));
  }
  ALTIPLANO_RETURN_IF_ERROR(barrier());
  summary_.first_step = step_ + 1;
  int64_t max_steps = options_.get_int("train.max_steps");
  if (!is_first_rank()) return Status::ok();
  remove_unfinished(checkpoint_directory_);
  const StartFacts facts{rendezvous.host(),       environment_.job_id,
                         environment_.world_size, !environment_.rendezvous.empty(),
                         job_.plan.to_yaml(),     job_.plan.file};
  if (auto kept = write_provenance(job_.config, facts); !kept)  // a full disk ends no run that can train
    fmt::print(stderr, "note: provenance is not kept: {}\n", kept.status().to_string());
  ALTIPLANO_RETURN_IF_ERROR(metrics_.open(options_.get_string("run.dir") + "/metrics.jsonl", step_));
  progress_ = std::make_unique<Progress>(step_ + 1, max_steps, options_.get_int("train.log_every"),
                                         environment_.terminal_columns, program_.peak());
  return Status::ok();
}

Status Trainer::restore(const Checkpoint& checkpoint) {
  const CheckpointInfo& info = checkpoint.manifest().info;
  ALTIPLANO_RETURN_IF_ERROR(check_architecture(info, model_fingerprint(options_), model_architecture(options_)));
  ALTIPLANO_RETURN_IF_ERROR(restore_state(*executor_, checkpoint).with_context("while restoring " + checkpoint.path()));
  step_ = info.step;
  samples_ = info.samples_consumed;
  run_id_ = info.run_id;
  saved_step_ = step_;
  resumed_from_ = checkpoint.path();
  return Status::ok();
}

void Trainer::show_banner(const std::string& comm, const std::string& host) {
  BannerFacts facts;
  facts.device = device_->info().name;
  facts.comm = comm;
  facts.host = host;
  facts.training_tokens = source_->num_training_tokens();
  facts.data_name = source_->training_name();
  facts.checkpoint_directory = checkpoint_directory_;
  int64_t bytes = 0;
  const Graph& graph = job_.graph->graph;
  for (const Parameter& p : graph.parameters())
    bytes += num_elements(graph.value(p.value).shape) * size_of(graph.value(p.value).dtype);
  for (const ParameterTraining& p : job_.graph->parameters)
    for (ValueId state : p.states) bytes += num_elements(graph.value(state).shape) * size_of(graph.value(state).dtype);
  facts.checkpoint_bytes = Bytes(bytes);
  std::error_code error;
  std::filesystem::path existing = std::filesystem::absolute(checkpoint_directory_);
  while (!std::filesystem::exists(existing, error) && existing.has_parent_path() && existing != existing.parent_path())
    existing = existing.parent_path();
  facts.free_bytes = Bytes(static_cast<int64_t>(std::filesystem::space(existing, error).available));
  progress_->note(banner_text(job_, facts));
  if (step_ > 0) progress_->note(fmt::format("resumed   from step {} in {}", step_, resumed_from_));
}

Result<TrainSummary> Trainer::run() {
  int64_t max_steps = options_.get_int("train.max_steps"), save_every = options_.get_int("checkpoint.every_steps");
  int64_t validate_every = options_.get_int("train.validate_every");
  while (step_ < max_steps && !summary_.stopped_early) {
    ALTIPLANO_ASSIGN(const bool stops, step());
    summary_.stopped_early = stops && step_ < max_steps;
    if (validate_every > 0 && (step_ % validate_every == 0 || step_ == max_steps))
      ALTIPLANO_RETURN_IF_ERROR(validate());
    bool is_due = save_every > 0 && step_ % save_every == 0;
    if (is_due || step_ == max_steps || summary_.stopped_early) ALTIPLANO_RETURN_IF_ERROR(save());
  }
  summary_.steps_done = step_;
  if (const Status status = report_memory(); !status.is_ok()) tell(status.to_string());
  if (metrics_.num_lost() > 0) tell(fmt::format("metrics.jsonl: {} lines are lost", metrics_.num_lost()));
  return summary_;
}

Status Trainer::report_memory() {
  std::string run = options_.get_string("run.dir");
  std::error_code error;
  std::filesystem::create_directories(run, error);
  ALTIPLANO_ASSIGN(const Bytes resident, resident_peak());
  return write_memory_report(run, {environment_.rank.value, program_.peak(), device_->peak_allocated(), resident});
}

/// True: stop after this step.
Result<bool> Trainer::step() {
  report_.set(RankPhase::kTraining, step_ + 1);
  auto begin = std::chrono::steady_clock::now();
  StepMetrics metrics;
  metrics.step = step_ + 1;
  StepScalars scalars;
  scalars.step = metrics.step;
  scalars.learning_rate = metrics.learning_rate = learning_rate_at(rate_, metrics.step);
  input_->start(BatchInput::Part::kTraining, samples_);
  bool stops = false;
  Status status = executor_->run_step(
      *input_, scalars,
      [&](const StepTotals& totals, StepScalars& s) {
        StepDecision decision = decide_step(totals, options_.get_float("train.gradient_clipping"));
        s.gradient_scale = decision.gradient_scale;
        metrics.loss = totals.loss();
        metrics.gradient_norm = decision.gradient_norm;
        metrics.tokens = static_cast<int64_t>(totals.token_count);
        metrics.skipped = !decision.applies;
        stops = totals.stop_requests > 0;
        return decision.applies;
      },
      stop_requested_());
  ALTIPLANO_RETURN_IF_ERROR(status);
  if (metrics.skipped && metrics.tokens > 0) {
    ALTIPLANO_ASSIGN(metrics.not_finite, find_not_finite(scalars));
  }
  ++step_;
  samples_ += job_.plan.global_batch;
  summary_.loss = metrics.loss;
  metrics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  metrics.tokens_per_second = static_cast<double>(metrics.tokens) / metrics.seconds;
  if (is_first_rank()) {
    tell(metrics_.write_step(metrics));
    progress_->step(metrics);
    if (metrics.not_finite)
      progress_->note(
          fmt::format("step {} skipped on all ranks, not finite: {}", step_, metrics.not_finite->to_string()));
  }
  ALTIPLANO_RETURN_IF_ERROR(check_divergence(metrics));
  return stops;
}

/// Where the values of the skipped step came from that are not finite, for all ranks alike. Samples are counted over
/// the run.
Result<NotFinite> Trainer::find_not_finite(const StepScalars& scalars) {
  input_->start(BatchInput::Part::kTraining, samples_);
  ALTIPLANO_ASSIGN(NotFinite mine, executor_->find_not_finite(*input_, scalars));
  mine.host = short_host_name();
  mine.first_sample += samples_;
  return first_not_finite(*communicator_, executor_->communicator_group(GroupId(0)), mine);
}

/// A run whose steps are all skipped trains nothing any more: it ends before it saves over good checkpoints. All ranks
/// see the same totals and come to the same end.
Status Trainer::check_divergence(const StepMetrics& metrics) {
  constexpr int64_t kMostSkipped = 20;
  skipped_in_a_row_ = metrics.skipped ? skipped_in_a_row_ + 1 : 0;
  const bool ends = step_ == options_.get_int("train.max_steps");
  if (skipped_in_a_row_ < kMostSkipped && !(ends && skipped_in_a_row_ > 0)) return Status::ok();
  return {StatusCode::kDiverged,
          fmt::format(
              "step {}: loss and gradient norm were not finite for {} step{} in a row, all skipped{}; go on from an "
              "earlier checkpoint with a smaller optimizer.lr (now {})",
              step_, skipped_in_a_row_, skipped_in_a_row_ == 1 ? "" : "s",
              metrics.not_finite ? ", the last one by " + metrics.not_finite->to_string() : "",
              options_.get_float("optimizer.lr"))};
}

Status Trainer::validate() {
  if (source_->num_validation_samples() == 0) return Status::ok();
  report_.set(RankPhase::kValidating, step_);
  int64_t batch = job_.plan.global_batch;
  int64_t batches =
      std::min(options_.get_int("train.validation_batches"), (source_->num_validation_samples() + batch - 1) / batch);
  double loss_sum = 0, tokens = 0;
  for (int64_t b = 0; b < batches; ++b) {
    input_->start(BatchInput::Part::kValidation, b * batch);
    ALTIPLANO_ASSIGN(StepTotals totals, executor_->run_validation(*input_));
    loss_sum += totals.loss_sum;
    tokens += totals.token_count;
  }
  summary_.has_validation = true;
  summary_.validation_loss = tokens > 0 ? loss_sum / tokens : 0;
  if (!is_first_rank()) return Status::ok();
  progress_->note(fmt::format("validation step {}: loss {:.4f} over {} tokens", step_, summary_.validation_loss,
                              with_thousands(static_cast<int64_t>(tokens))));
  tell(metrics_.write_validation(step_, summary_.validation_loss, static_cast<int64_t>(tokens)));
  return Status::ok();
}

Status Trainer::barrier() {
  CollectiveCall call;
  call.kind = CollectiveKind::kBarrier;
  ALTIPLANO_ASSIGN(Event event, communicator_->collective(executor_->communicator_group(GroupId(0)), call,
                                                          StreamKind::kCollective, {}));
  return communicator_->wait(event);
}

Status Trainer::save() {
  if (saved_step_ == step_) return Status::ok();
  report_.set(RankPhase::kSaving, step_);
  auto begin = std::chrono::steady_clock::now();
  if (is_first_rank()) discard_unfinished(checkpoint_directory_, step_);
  ALTIPLANO_RETURN_IF_ERROR(barrier());
  ALTIPLANO_ASSIGN(SavedState state, SavedState::take(*executor_));
  ALTIPLANO_RETURN_IF_ERROR(save_shard(checkpoint_directory_, step_, environment_.rank.value, state.parts()));
  ALTIPLANO_RETURN_IF_ERROR(barrier());
  if (is_first_rank()) {
    CheckpointInfo info;
    info.step = step_;
    info.samples_consumed = samples_;
    info.world_size = environment_.world_size;
    info.run_id = run_id_;
    info.model_fingerprint = model_fingerprint(options_);
    info.architecture = model_architecture(options_);
    info.plan = job_.plan.to_yaml();
    ALTIPLANO_ASSIGN(
        PublishReport report,
        publish_checkpoint(checkpoint_directory_, info, static_cast<int>(options_.get_int("checkpoint.keep_last"))));
    std::vector<std::string> kept;
    for (int64_t step : report.kept) kept.push_back(std::to_string(step));
    Seconds took(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    progress_->note(fmt::format("checkpoint step {} saved in {} ({}), kept {}", step_, to_string(took),
                                to_string(Bytes(report.bytes)), join(kept, ", ")));
  }
  saved_step_ = step_;
  return barrier();
}

}  // namespace altiplano
