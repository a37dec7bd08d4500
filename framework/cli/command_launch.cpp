// altiplano launch: the ranks of a job on this host, each an `altiplano train` of its own.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/base/text.hpp"
#include "framework/checkpoint/restore.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/cli/job_start.hpp"
#include "framework/cli/local_ranks.hpp"
#include "framework/launch/allocation.hpp"
#include "framework/launch/launcher.hpp"
#include "framework/launch/stop_signal.hpp"
#include "framework/launch/task_ranks.hpp"
#include "framework/runtime/time_budget.hpp"
#include "framework/runtime/trainer.hpp"

namespace altiplano {
namespace {

struct LaunchArguments {
  JobArguments job;
  TrainStart start;
  int ranks = 1;
  bool pin = false;
};

std::vector<std::string> rank_command(const LaunchArguments& arguments) {
  std::vector<std::string> command = job_command("train", arguments.job);
  add_start_options(command, arguments.start);
  return command;
}

/// The launcher's own end for ranks that stay stopped comes after the ranks' own, which know the operation.
std::chrono::milliseconds stopped_limit(const Options& options) {
  constexpr double kLater = 2;
  return std::chrono::milliseconds(static_cast<int64_t>(1000 * (options.get_float("comm.timeout_seconds") + kLater)));
}

/// What the workload manager gave; this launcher starts ranks on its own host only.
Result<JobAllocation> ask_scheduler(int ranks) {
  ALTIPLANO_ASSIGN(JobAllocation found, find_allocation(environment_variables(), ranks));
  if (found.allocation.hosts.size() == 1) return found;
  return invalid_argument(
      "{} gave the job {} hosts ({}); `altiplano launch` starts ranks on one. One rank per task, on all hosts: srun "
      "--mpi=pmix altiplano train ...",
      found.scheduler, found.allocation.hosts.size(), join(found.allocation.hosts, ", "));
}

/// All that can be refused before a rank starts. What the workload manager gave goes into `launch`.
Result<Job> prepare(const LaunchArguments& arguments, double started, LaunchRequest& launch) {
  ALTIPLANO_RETURN_IF_ERROR(check_is_only_task("launch", environment_variables()));
  ALTIPLANO_ASSIGN(JobConfig config, load_training_job(arguments.job, arguments.start));
  ALTIPLANO_ASSIGN(const JobAllocation found, ask_scheduler(arguments.ranks));
  launch.job_id = found.allocation.job_id;
  launch.cpus_per_rank = found.allocation.cpus_per_rank;
  ALTIPLANO_ASSIGN(launch.end_time, end_of_run(config.options, found, started));
  JobRequest request;
  request.num_ranks = arguments.ranks;
  request.threads = threads_of_rank(launch);
  request.plan_file = arguments.start.plan_file;
  request.takes_cached_plan = true;
  return prepare_for_ranks(std::move(config), request, 1);
}

/// What a run that ended by a failure leaves, and how to go on. Refusals, and failures that say it themselves, need
/// nothing of it.
std::string way_on(const LaunchOutcome& outcome, const Options& options) {
  const bool is_death = outcome.exit_code == exit_code_of(StatusCode::kRuntimeFailure) ||
                        outcome.exit_code >= exit_code_of(StatusCode::kPeerStuck);
  if (!is_death || outcome.message.find("the last checkpoint is that of step") != std::string::npos) return {};
  const std::string directory = options.get_string("checkpoint.dir");
  const auto found = find_checkpoint(directory, "auto", CheckLevel::kSizes);
  if (!found || !found->checkpoint) return fmt::format("no checkpoint is in {}: a new start begins anew", directory);
  const bool takes_it = options.get_string("train.resume") == "auto" || options.get_string("train.resume") == "must";
  return fmt::format("the checkpoint of step {} remains in {}: start again{} to go on from it",
                     found->checkpoint->manifest().info.step, directory, takes_it ? "" : " with --resume auto");
}

/// On the message's first line: more of them tell the whole story of the failure.
std::string with_way_on(const LaunchOutcome& outcome, const Options& options) {
  const std::string more = way_on(outcome, options);
  const size_t end = outcome.message.find('\n');
  if (more.empty()) return outcome.message;
  return outcome.message.substr(0, end) + "; " + more + (end == std::string::npos ? "" : outcome.message.substr(end));
}

Status launch(const LaunchArguments& arguments, int& exit_code) {
  const double started = unix_time();
  exit_on_stop_signals(
      "note: asked to stop before the ranks were started; nothing was trained, start again to go on\n");
  signal(SIGPIPE, SIG_IGN);  // a console that is gone stops no job
  LaunchRequest request;
  request.ranks = arguments.ranks;
  ALTIPLANO_ASSIGN(const Job job, prepare(arguments, started, request));
  const Options& options = job.config.options;
  const std::string run = options.get_string("run.dir");
  request.command = rank_command(arguments);
  request.plan = job.plan.to_yaml();
  request.log_directory = run + "/logs";
  request.pin_cpus = arguments.pin;
  request.ranks_report = true;
  request.stopped_limit = stopped_limit(options);
  flush_out();
  ALTIPLANO_ASSIGN(const LaunchOutcome outcome, launch_ranks(request));
  ignore_stop_signals();
  if (!outcome.message.empty()) print_err("error: {}\n", with_way_on(outcome, options));
  if (outcome.output_error != 0) note_output_error(outcome.output_error);
  exit_code = outcome.exit_code;
  return Status::ok();
}

}  // namespace

void add_launch_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<LaunchArguments>();
  CLI::App* command = add_command(app, "launch", "Train on several ranks of this host", R"(
    altiplano launch -n 4 -c configs/jobs/quickstart.yaml
    altiplano launch -n 4 -c configs/jobs/quickstart.yaml --set train.max_steps=20
    altiplano launch -n 4 -c configs/jobs/quickstart.yaml --resume must)");
  add_job_arguments(*command, arguments->job);
  add_train_start(*command, arguments->start);
  command->add_option("-n,--ranks", arguments->ranks, "Processes to start, one per device")
      ->required()
      ->check(CLI::Range(1, 4096))
      ->type_name("RANKS");
  command->add_flag("--pin", arguments->pin,
                    "Give each rank its own share of the processors; otherwise all ranks may use all");
  command->footer(command->get_footer() +
                  "\nEvery rank runs `altiplano train` with these options. Logs: <run.dir>/logs/rank-N.log.");
  on_run_for_code(command, exit_code, [arguments](int& code) { return launch(*arguments, code); });
}

}  // namespace altiplano
