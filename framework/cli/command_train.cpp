// altiplano train: one rank of a job, or all of it when started alone.
#include <fmt/format.h>

#include <atomic>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/cli/job_start.hpp"
#include "framework/launch/allocation.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/rank_beats.hpp"
#include "framework/launch/rank_board.hpp"
#include "framework/launch/stop_signal.hpp"
#include "framework/launch/task_ranks.hpp"
#include "framework/runtime/job_data.hpp"
#include "framework/runtime/job_placement.hpp"
#include "framework/runtime/kernel_choice.hpp"
#include "framework/runtime/output_folders.hpp"
#include "framework/runtime/time_budget.hpp"
#include "framework/runtime/trainer.hpp"

namespace altiplano {
namespace {

struct TrainArguments {
  JobArguments job;
  TrainStart start;
};

/// Alone, a process is a world of one whose memory is its own.
Result<std::unique_ptr<Rendezvous>> meet(const RankEnvironment& environment) {
  if (environment.world_size > 1) return join_job(environment);
  return std::unique_ptr<Rendezvous>(std::make_unique<InprocRendezvous>(std::make_shared<InprocWorld>(1), RankId(0)));
}

/// For the thread that hears signals, until the process is gone: never destroyed.
RankReport& report_of_this_rank() {
  static auto* const report = new RankReport;
  return *report;
}

/// Of tasks the first speaks for all, as Slurm signals all of them.
std::atomic<bool> another_rank_speaks{false};

/// The launcher tells people, once for all ranks; alone, the process does it itself.
void tell_that_stop_was_heard(int number) {
  const RankReport& report = report_of_this_rank();
  if (report.activity().phase == RankPhase::kDone) return;  // the end has come without it
  if (report.is_read()) return report.set_stop_signal(number);
  if (another_rank_speaks) return;
  print_err("note: {} heard; the step that runs is finished and saved first\n", signal_name(number));
}

/// What was set and generation needs too.
std::string settings_of_the_model(const std::vector<std::string>& overrides) {
  std::string text;
  for (const auto& assignment : overrides)
    for (const char* section : {"run.", "model.", "data.", "checkpoint.", "device.", "plugins."})
      if (assignment.starts_with(section)) text += " --set " + shell_word(assignment);
  return text;
}

void print_end(const TrainArguments& arguments, const TrainSummary& summary, const Job& job) {
  int64_t steps = summary.steps_done - summary.first_step + 1;
  std::string validation = summary.has_validation ? fmt::format(", validation {:.4f}", summary.validation_loss) : "";
  if (summary.stopped_early) {
    print_out("stopped   after step {} as asked and saved (exit code {}); start it again to go on\n",
              summary.steps_done, exit_code_of(StatusCode::kStoppedEarly));
  } else if (steps <= 0) {
    print_out("done      nothing to do: step {} of {} was reached before; raise train.max_steps to go on\n",
              summary.steps_done, job.config.options.get_int("train.max_steps"));
  } else {
    print_out("done      {}, {} a step, loss {:.4f}{}; next: altiplano generate -c {}{} --prompt 'In the beginning'\n",
              counted(steps, "step"), counted(job.plan.global_batch, "sample"), summary.loss, validation,
              shell_word(arguments.job.file), settings_of_the_model(arguments.job.overrides));
  }
}

/// A failure that all ranks know is told by the first of them.
Status said_by_first(const RankEnvironment& environment, const Status& status, int& exit_code) {
  if (environment.rank.value == 0) return status;
  exit_code = exit_code_of(status.code());
  return Status::ok();
}

/// What a launcher does before it starts ranks. Data that cannot be read are said before anything is measured.
Status choose_kernels_alone(Job& job) {
  ALTIPLANO_RETURN_IF_ERROR(BatchSource::open(job_data_options(job)).status());
  ALTIPLANO_ASSIGN(const KernelChoice kernels, choose_job_kernels(job, KernelStart::kResume));
  print_notices(kernels.notices);
  return Status::ok();
}

/// From a rank's job to the end of its training. `rendezvous` goes before training begins.
Status run_rank(const TrainArguments& arguments, const Job& job, const RankEnvironment& environment,
                std::unique_ptr<Rendezvous> rendezvous, int& exit_code) {
  const RankReport& report = report_of_this_rank();
  ALTIPLANO_ASSIGN(auto trainer,
                   Trainer::create(job, environment, *rendezvous, report, [] { return stop_signal() != 0; }));
  rendezvous.reset();  // all ranks have had all they need of it: creating a trainer ends with a barrier
  auto summary = trainer->run();
  if (!summary.is_ok()) {
    trainer->abort(summary.status());
    return summary.status();
  }
  if (environment.rank.value == 0) print_end(arguments, *summary, job);
  report.set(RankPhase::kDone, summary->steps_done);
  if (summary->stopped_early) exit_code = exit_code_of(StatusCode::kStoppedEarly);
  return Status::ok();
}

/// One of the tasks that srun or mpirun started: the first does what a launcher does, and the others take its plan.
Status train_as_task(const TrainArguments& arguments, RankEnvironment environment, TaskRanks tasks, double started,
                     int& exit_code) {
  another_rank_speaks = environment.rank.value != 0;
  const auto beats = RankBeats::start(environment, short_host_name(), report_of_this_rank());
  Job job;
  const auto prepare_alone = [&]() -> Result<std::string> {
    print_notices(tasks.notices);
    ALTIPLANO_ASSIGN(JobConfig config, load_training_job(arguments.job, arguments.start));
    ALTIPLANO_ASSIGN(const JobAllocation found, find_allocation(environment_variables(), environment.world_size));
    ALTIPLANO_ASSIGN(environment.end_time, end_of_run(config.options, found, started));
    ALTIPLANO_ASSIGN(const JobRequest request, job_request_of(environment, arguments.start.plan_file));
    ALTIPLANO_ASSIGN(job, prepare_for_ranks(std::move(config), request, num_hosts(environment.hosts),
                                            environment.start_name.empty() ? RunFolder::kMade : RunFolder::kTaken));
    return told_plan(job);
  };
  ALTIPLANO_ASSIGN(const FirstRanksWord word, hear_first_rank(*tasks.rendezvous, prepare_alone));
  if (!word.status.is_ok()) return said_by_first(environment, word.status, exit_code);
  if (environment.rank.value != 0) {
    ALTIPLANO_ASSIGN(JobConfig config, load_training_job(arguments.job, arguments.start, false));
    ALTIPLANO_ASSIGN(JobRequest request, job_request_of(environment, arguments.start.plan_file));
    ALTIPLANO_ASSIGN(request.proved, plan_as_told(word.text, environment.rank));
    ALTIPLANO_ASSIGN(job, prepare_job(std::move(config), request));
  }
  return run_rank(arguments, job, environment, std::move(tasks.rendezvous), exit_code);
}

Status train(const TrainArguments& arguments, int& exit_code) {
  const double started = unix_time();
  catch_stop_signals();
  ALTIPLANO_ASSIGN(RankEnvironment environment, rank_environment());
  RankReport& report = report_of_this_rank();
  ALTIPLANO_ASSIGN(report, RankReport::open(environment.board, environment.rank, environment.world_size));
  catch_stop_signals(tell_that_stop_was_heard);
  report.set(RankPhase::kStarting, 0);
  const bool has_launcher = !environment.rendezvous.empty();  // which has printed the notices
  if (!has_launcher) {
    use_plugin_path(arguments.job.plugin_path);
    auto tasks = meet_tasks(environment, environment_variables());
    if (!tasks.is_ok()) return said_by_first(environment, tasks.status(), exit_code);
    if (tasks->rendezvous) return train_as_task(arguments, environment, std::move(*tasks), started, exit_code);
    print_notices(tasks->notices);
  }
  ALTIPLANO_ASSIGN(JobConfig config, load_training_job(arguments.job, arguments.start, !has_launcher));
  ALTIPLANO_ASSIGN(const JobRequest request, job_request_of(environment, arguments.start.plan_file));
  ALTIPLANO_ASSIGN(Job job, prepare_job(std::move(config), request));
  if (!has_launcher) ALTIPLANO_RETURN_IF_ERROR(check_can_write(job.config.options, 1, RunFolder::kMade));
  if (!has_launcher) print_notices(job.notices);
  if (!has_launcher) ALTIPLANO_RETURN_IF_ERROR(choose_kernels_alone(job));
  if (!has_launcher) {
    ALTIPLANO_ASSIGN(environment.end_time, run_end(job.config.options, 0, started));
  }
  ALTIPLANO_ASSIGN(auto rendezvous, meet(environment));
  return run_rank(arguments, job, environment, std::move(rendezvous), exit_code);
}

}  // namespace

void add_train_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = add_command(app, "train", "Train a model: one rank of a job, or all of it when started alone", R"(
    altiplano train -c configs/jobs/quickstart.yaml --set parallel.data_parallel_size=1 --set parallel.tensor_parallel_size=1
    altiplano train -c job.yaml --resume must
    altiplano train -c job.yaml --plan plan.yaml
    srun --mpi=pmix altiplano train -c job.yaml)");
  add_job_arguments(*command, arguments->job);
  add_train_start(*command, arguments->start);
  on_run_for_code(command, exit_code, [arguments](int& code) { return train(*arguments, code); });
}

}  // namespace altiplano
