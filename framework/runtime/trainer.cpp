#include "framework/runtime/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/config/job_values.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/task_ranks.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/runtime/checkpoint_space.hpp"
#include "framework/runtime/job_data.hpp"
#include "framework/runtime/memory_report.hpp"
#include "framework/runtime/resume.hpp"

namespace altiplano {

namespace {

/// Why ranks that another launcher started talk by this backend.
std::string reason_for_comm(const Options& options, const std::vector<std::string>& hosts, RankModel& model) {
  const std::string how = model.communicator().describe(), more = how.empty() ? "" : ": " + how;
  if (options.get_string("comm.backend") != "auto") return "as asked" + more;
  if (num_hosts(hosts) == 1) return "all ranks are on one host" + more;
  const auto backend = PluginRegistry::instance().comm(model.comm_name());
  const bool notices = backend.is_ok() && ((*backend)->capabilities() & kCommNoticesDeath) != 0;
  return (notices ? "it connects hosts and notices when a rank dies" : "it connects hosts") + more;
}

/// A notice to whoever watches; empty: none.
void tell(const std::string& text) {
  if (text.empty()) return;
  flush_out();
  print_err("note: {}\n", text);
}

Seconds since(std::chrono::steady_clock::time_point begin) {
  return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

Result<BatchSource> open_data(const Job& job) {
  return BatchSource::open(job_data_options(job));
}

}  // namespace

Status check_can_start(const Job& job) {
  ALTIPLANO_ASSIGN(const BatchSource source, open_data(job));
  const Options& options = job.config.options;
  const std::string directory = options.get_string("checkpoint.dir");
  ALTIPLANO_RETURN_IF_ERROR(check_space(forecast_space(job)).status());
  ALTIPLANO_ASSIGN(const FoundCheckpoint found,
                   find_checkpoint(directory, options.get_string("train.resume"), CheckLevel::kSizes));
  if (found.checkpoint) return check_resume(job, source, *found.checkpoint).status();
  return check_no_other_run(directory, "");
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
  if (model_) model_->abort(status);
}

Status Trainer::open(Rendezvous& rendezvous) {
  ALTIPLANO_ASSIGN(source_, open_data(job_));
  input_ = std::make_unique<BatchInput>(*source_, *job_.graph);
  ALTIPLANO_ASSIGN(model_, RankModel::open(job_, environment_, rendezvous, /*fetch_logits=*/false));
  model_->executor().report_to(report_);
  ALTIPLANO_RETURN_IF_ERROR(start(rendezvous));
  const std::string& comm = model_->comm_name();
  if (is_first_rank()) show_banner(comm.substr(comm.find('/') + 1), rendezvous.host());
  return Status::ok();
}

void Trainer::show_banner(const std::string& comm, const std::string& host) {
  BannerFacts facts;
  facts.device = model_->device().info().name;
  facts.threads = model_->device().info().threads;
  facts.comm = comm;
  facts.host = host;
  if (const auto& hosts = environment_.hosts; !hosts.empty()) {
    facts.comm += fmt::format(" ({})", reason_for_comm(options_, hosts, *model_));
    facts.host = fmt::format("{} ({})", counted(num_hosts(hosts), "host"), placement_text(hosts));
  }
  facts.training_tokens = source_->num_training_tokens();
  facts.data_name = source_->training_name();
  facts.checkpoint_directory = checkpoint_directory_;
  facts.checkpoint_bytes = checkpoint_bytes(job_);
  facts.free_bytes = free_bytes_at(checkpoint_directory_).value_or(Bytes(0));
  progress_->note(banner_text(job_, facts));
  if (step_ > 0) progress_->note(fmt::format("resumed   from step {} in {}", step_, resumed_from_));
  const int64_t max_steps = options_.get_int("train.max_steps");
  if (step_ < max_steps) progress_->note(start_line(step_ + 1, max_steps, job_.plan.predicted.step));
}

Result<TrainSummary> Trainer::run() {
  const int64_t max_steps = options_.get_int("train.max_steps");
  while (step_ < max_steps && !summary_.stopped_early) {
    ALTIPLANO_ASSIGN(const bool stops, step());
    summary_.stopped_early = stops && step_ < max_steps;
    ALTIPLANO_RETURN_IF_ERROR(validate_and_save());
  }
  summary_.steps_done = step_;
  ALTIPLANO_RETURN_IF_ERROR(record_end());
  if (const Status status = report_memory(); !status.is_ok()) tell(status.to_string());
  if (metrics_.num_lost() > 0)
    tell(fmt::format("metrics.jsonl: {} {} lost", counted(metrics_.num_lost(), "line"),
                     plural(metrics_.num_lost(), "is", "are")));
  return summary_;
}

/// What is due after a step, timed for the run's end.
Status Trainer::validate_and_save() {
  const int64_t validate_every = options_.get_int("train.validate_every"),
                save_every = options_.get_int("checkpoint.every_steps");
  const bool is_end = step_ == options_.get_int("train.max_steps");
  auto begin = std::chrono::steady_clock::now();
  if (validate_every > 0 && (step_ % validate_every == 0 || is_end)) {
    ALTIPLANO_RETURN_IF_ERROR(validate());
    budget_.note_validation(since(begin));
  }
  begin = std::chrono::steady_clock::now();
  if ((save_every > 0 && step_ % save_every == 0) || is_end || summary_.stopped_early) {
    ALTIPLANO_RETURN_IF_ERROR(save());
    budget_.note_save(since(begin));
  }
  return Status::ok();
}

Status Trainer::report_memory() {
  std::string run = options_.get_string("run.dir");
  std::error_code error;
  std::filesystem::create_directories(run, error);
  ALTIPLANO_ASSIGN(const Bytes resident, size_in_status("VmHWM"));
  ALTIPLANO_ASSIGN(const Bytes shared, size_in_status("RssShmem"));
  return write_memory_report(
      run, {environment_.rank.value, model_->program().peak(), model_->device().peak_allocated(), resident, shared});
}

/// Whether the step that begins has to be the last, by the first rank's clock, which tells it.
bool Trainer::time_is_over() {
  const double now = unix_time();
  if (!is_first_rank() || !budget_.is_last_step(now)) return false;
  progress_->note(fmt::format("time      step {} is the last one: {} until the end of the time given", step_ + 1,
                              hours_minutes_seconds(Seconds(static_cast<double>(budget_.end()) - now))));
  return true;
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
  Status status = model_->executor().run_step(
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
      stop_requested_() || time_is_over());
  ALTIPLANO_RETURN_IF_ERROR(status);
  if (metrics.skipped && metrics.tokens > 0) {
    ALTIPLANO_ASSIGN(metrics.not_finite, find_not_finite(scalars));
  }
  ++step_;
  samples_ += job_.plan.global_batch;
  summary_.loss = metrics.loss;
  metrics.seconds = since(begin).value;
  budget_.note_step(Seconds(metrics.seconds));
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
  ALTIPLANO_ASSIGN(NotFinite mine, model_->executor().find_not_finite(*input_, scalars));
  mine.host = short_host_name();
  mine.first_sample += samples_;
  return first_not_finite(model_->communicator(), model_->executor().communicator_group(GroupId(0)), mine);
}

/// A run whose steps are all skipped trains nothing any more: it ends before it saves over good checkpoints. All ranks
/// see the same totals and come to the same end.
Status Trainer::check_divergence(const StepMetrics& metrics) {
  constexpr int64_t kMostSkipped = 20;
  skipped_in_a_row_ = metrics.skipped ? skipped_in_a_row_ + 1 : 0;
  const bool ends = step_ == options_.get_int("train.max_steps");
  if (skipped_in_a_row_ < kMostSkipped && !(ends && skipped_in_a_row_ > 0)) return Status::ok();
  return {StatusCode::kDiverged,
          fmt::format("step {}: loss and gradient norm were not finite for {} in a row, all skipped{}; go on from an "
                      "earlier checkpoint with a smaller optimizer.lr (now {})",
                      step_, counted(skipped_in_a_row_, "step"),
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
    ALTIPLANO_ASSIGN(StepTotals totals, model_->executor().run_validation(*input_));
    loss_sum += totals.loss_sum;
    tokens += totals.token_count;
  }
  summary_.has_validation = true;
  summary_.validation_loss = tokens > 0 ? loss_sum / tokens : 0;
  if (!is_first_rank()) return Status::ok();
  progress_->note(fmt::format("validation step {}: loss {:.4f} over {}", step_, summary_.validation_loss,
                              counted(static_cast<int64_t>(tokens), "token")));
  tell(metrics_.write_validation(step_, summary_.validation_loss, static_cast<int64_t>(tokens)));
  return Status::ok();
}

Status Trainer::barrier() {
  CollectiveCall call;
  call.kind = CollectiveKind::kBarrier;
  ALTIPLANO_ASSIGN(Event event, model_->communicator().collective(model_->executor().communicator_group(GroupId(0)),
                                                                  call, StreamKind::kCollective, {}));
  return model_->communicator().wait(event);
}

}  // namespace altiplano
