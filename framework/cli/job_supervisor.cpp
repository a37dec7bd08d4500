#include "framework/cli/job_supervisor.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/start_watch.hpp"
#include "framework/launch/stop_signal.hpp"
#include "framework/runtime/end_record.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr auto kFirstWordLimit = std::chrono::minutes(15);  // for srun to start the ranks, and planning
constexpr auto kAskLimit = std::chrono::seconds(30);        // for Slurm to answer

milliseconds span_of(const Options& options, const char* key) {
  return milliseconds(static_cast<int64_t>(1000 * options.get_float(key)));
}

int whole_or(const Options& options, const char* key, int otherwise) {
  return options.is_set(key) ? static_cast<int>(options.get_int(key)) : otherwise;
}

std::string count_of_nodes(size_t nodes) {
  return counted(static_cast<int64_t>(nodes), "node");
}

}  // namespace

Result<std::unique_ptr<JobSupervisor>> JobSupervisor::create(const SuperviseArguments& arguments) {
  std::unique_ptr<JobSupervisor> supervisor(new JobSupervisor(arguments));
  ALTIPLANO_RETURN_IF_ERROR(supervisor->open());
  return supervisor;
}

void JobSupervisor::read_options(const Tasks& tasks) {
  const auto allocated = static_cast<int>(place_.allocation.hosts.size());
  tasks_ = whole_or(options_, "slurm.ntasks_per_node", place_.allocation.ranks_per_host.front());
  cpus_ = whole_or(options_, "slurm.cpus_per_task", std::max(1, tasks.cpus_each));
  limits_.nodes = std::min(allocated, whole_or(options_, "slurm.nodes", allocated));
  limits_.min_nodes = static_cast<int>(options_.get_int("slurm.min_nodes"));
  limits_.max_restarts = static_cast<int>(options_.get_int("slurm.max_restarts"));
  place_.deadline = span_of(options_, "slurm.heartbeat_seconds");
  stall_limit_ = span_of(options_, "slurm.stall_seconds");
  if (!options_.is_set("slurm.stall_seconds")) stall_limit_ = std::max(stall_limit_, 2 * place_.deadline);
  place_.run_directory = fs::absolute(options_.get_string("run.dir")).lexically_normal().string();
}

Status JobSupervisor::open() {
  ALTIPLANO_ASSIGN(const JobConfig config, load_training_job(arguments_.job, arguments_.start));
  options_ = config.options;
  const auto variables = environment_variables();
  ALTIPLANO_ASSIGN(place_.scheduler, find_scheduler(variables));
  const Scheduler& scheduler = *place_.scheduler.scheduler;
  ALTIPLANO_ASSIGN(const Tasks tasks, scheduler.tasks(variables));
  ALTIPLANO_ASSIGN(place_.allocation, scheduler.allocation(variables, tasks.planned));
  read_options(tasks);
  std::error_code error;
  fs::create_directories(place_.run_directory + "/logs", error);
  if (error) return invalid_argument("{}: cannot be made: {}", place_.run_directory + "/logs", error.message());
  const Allocation& allocation = place_.allocation;
  // A workload manager without steps says so now.
  ALTIPLANO_RETURN_IF_ERROR(
      scheduler.step_command({.hosts = allocation.hosts, .output = {}, .command = {own_program()}}).status());
  ALTIPLANO_ASSIGN(
      job_, ShrinkingJob::open(arguments_.job, arguments_.start, options_, limits_.nodes, limits_.min_nodes, tasks_));
  story_.emplace(place_.run_directory,
                 fmt::format("job {}.{} ({})", allocation.job_id, allocation.restart_count, short_host_name()), true);
  ALTIPLANO_ASSIGN(nodes_, NodeWatch::start(place_, *story_));
  return Status::ok();
}

std::string JobSupervisor::start_name() const {
  return fmt::format("{}.{}.{}", place_.allocation.job_id, place_.allocation.restart_count, num_starts_);
}

int64_t JobSupervisor::newest_checkpoint() const {
  int64_t newest = 0;
  for (const StepFolder& folder : list_step_folders(options_.get_string("checkpoint.dir")))
    newest = std::max(newest, folder.step);
  return newest;
}

void JobSupervisor::tell_start(const std::vector<std::string>& hosts, int64_t newest_checkpoint) const {
  const std::string from =
      newest_checkpoint > 0 ? fmt::format(", the newest checkpoint is that of step {}", newest_checkpoint) : "";
  story_->tell(fmt::format("start {}: {} on {} ({}){}", start_name(), counted(job_->num_ranks(hosts), "rank"),
                           count_of_nodes(hosts.size()), join(hosts, ", "), from));
}

Result<StepRequest> JobSupervisor::ranks_request(const std::vector<std::string>& hosts, const RankLogs& logs) const {
  StepRequest request;
  request.hosts = hosts;
  request.tasks_per_host = tasks_;
  request.cpus_per_task = cpus_;
  request.output = logs.pattern();
  // Where to begin was said for the first start; later ones go on from what that has saved.
  request.command = job_->command(hosts, num_starts_ == 0 && place_.allocation.restart_count == 0);
  return request;
}

Result<ChildProcess> JobSupervisor::start_step_of(const StepRequest& request) const {
  constexpr milliseconds kSlowest(5000), kQuickest(100);
  std::vector<std::string> environment = nodes_->environment();
  environment.push_back("ALTIPLANO_START=" + start_name());
  environment.push_back(
      fmt::format("ALTIPLANO_BEAT_MILLISECONDS={}", std::clamp(stall_limit_ / 10, kQuickest, kSlowest).count()));
  return start_step(*place_.scheduler.scheduler, request, environment);
}

/// One start of the ranks, from its first line in the story to what is known of its end.
Result<StartEnd> JobSupervisor::run_ranks(const std::vector<std::string>& hosts) {
  std::error_code error;
  fs::remove(place_.run_directory + "/end.json", error);  // of a start before; Slurm may count its jobs anew
  const int64_t before = newest_checkpoint();
  ALTIPLANO_ASSIGN(RankLogs logs, RankLogs::make(place_.run_directory, start_name()));
  ALTIPLANO_ASSIGN(const StepRequest request, ranks_request(hosts, logs));
  tell_start(hosts, before);
  StartEnd end;
  {
    ALTIPLANO_ASSIGN(ChildProcess step, start_step_of(request));
    watch(step, hosts, logs, end);
  }
  logs.follow();
  const auto record = read_end_record(place_.run_directory);
  end.has_record = record && record->start == start_name();
  end.is_done = end.has_record && record->is_done;
  if (end.has_record) {
    story_->tell(fmt::format("all {} agreed after step {}: {}", counted(record->ranks, "rank"), record->step,
                             end.is_done ? "done" : "saved and stopped"));
  } else {
    nodes_->end_ranks(start_name());  // of a step that ended by itself, too: srun may have left some behind
    nodes_->await_news_of(hosts);
    logs.tell_errors(job_->num_ranks(hosts), *story_);
  }
  end.made_progress = newest_checkpoint() > before;
  end.is_asked_to_stop = stop_signal() != 0;
  end.lost = nodes_->lost();
  return end;
}

/// Until the step has ended, of itself or because it cannot go on.
void JobSupervisor::watch(ChildProcess& step, const std::vector<std::string>& hosts, RankLogs& logs, StartEnd& end) {
  const auto begin = Clock::now();
  for (; !step.exit_code(); nodes_->tend()) {
    logs.follow();
    StartView view;
    view.is_a_node_lost = nodes_->note_silent(hosts);
    view.is_stop_heard = stop_signal() != 0;
    view.is_stop_passed_on = is_stop_passed_on_;
    view.has_spoken = logs.has_shown_something();
    view.age = Clock::now() - begin;
    view.standing_still = nodes_->who_stands_still(start_name(), stall_limit_);
    const StartDecision decision = decide_while(view, kFirstWordLimit);
    if (decision.order == StartOrder::kTellToStop) {
      is_stop_passed_on_ = true;
      story_->tell(fmt::format("{} heard: the ranks are told to save and stop", signal_name(stop_signal())));
      step.signal(SIGUSR1);  // srun hands it on; TERM would end it
    }
    if (decision.order != StartOrder::kEnd) continue;
    if (!decision.reason.empty()) story_->tell(decision.reason + ": the start is ended");
    end.ended_for = decision.reason;
    end_step(step);
    break;
  }
  end.exit_code = step.exit_code().value_or(128 + SIGKILL);
}

/// srun itself would wait for a dead node, and give the ranks time to save together with one that is not there.
void JobSupervisor::end_step(ChildProcess& step) const {
  nodes_->end_ranks(start_name());
  step.signal_group(SIGKILL);
  for (const auto until = Clock::now() + kAskLimit; !step.exit_code() && Clock::now() < until;) nodes_->tend();
}

/// Back into the queue, unless somebody has ended the job or put it there already. The exit code.
int JobSupervisor::requeue(const Decision& decision) {
  if (arguments_.no_requeue) {
    story_->tell(fmt::format("{}: the job ends with exit code {}", decision.reason, decision.exit_code));
    return decision.exit_code;
  }
  const Scheduler& scheduler = *place_.scheduler.scheduler;
  const std::string& id = place_.allocation.job_id;
  const auto job = scheduler.job_state(id, kAskLimit);
  if (job.is_ok() && !job->is_running) {
    story_->tell(fmt::format("{}; the job is {}, nothing is left to do", decision.reason, job->state));
    return decision.exit_code;
  }
  story_->tell(decision.reason + ": the job is requeued");
  const Status status = scheduler.requeue(id, kAskLimit);
  if (!status) story_->tell("it could not be: " + status.to_string());
  return decision.exit_code;
}

int JobSupervisor::end_with(const Decision& decision) {
  if (decision.move == NextMove::kRequeue) return requeue(decision);
  story_->tell(fmt::format("{}: exit code {}", decision.reason, decision.exit_code));
  return decision.exit_code;
}

Result<int> JobSupervisor::run() {
  const std::vector<std::string>& allocated = place_.allocation.hosts;
  story_->tell(fmt::format("{} allocated ({}), {} train, {} a node; heartbeats on {}", count_of_nodes(allocated.size()),
                           join(allocated, ", "), limits_.nodes, counted(tasks_, "rank"), nodes_->server().address()));
  nodes_->await_agents();
  std::vector<std::string> hosts =
      job_->divide_over(hosts_for_start(allocated, nodes_->lost(), limits_.nodes), *story_);
  for (int restarts = 0;; ++num_starts_) {
    if (const auto none = decide_before(hosts, stop_signal() != 0)) return end_with(*none);
    ALTIPLANO_ASSIGN(const StartEnd end, run_ranks(hosts));
    const Decision decision = decide_after(limits_, end, allocated, hosts, restarts);
    if (decision.move != NextMove::kRestart) return end_with(decision);
    restarts = decision.restarts;
    story_->tell(
        fmt::format("{}; {} left, going on with them", decision.reason, count_of_nodes(decision.hosts.size())));
    hosts = job_->divide_over(decision.hosts, *story_);
  }
}

}  // namespace altiplano
