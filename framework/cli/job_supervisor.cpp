#include "framework/cli/job_supervisor.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/cli/local_ranks.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/socket_message.hpp"
#include "framework/launch/stop_signal.hpp"
#include "framework/runtime/end_record.hpp"
#include "framework/runtime/job.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr auto kTick = milliseconds(100);
constexpr auto kAgentsLimit = std::chrono::seconds(60);     // for all agents to be there at the start
constexpr auto kFirstWordLimit = std::chrono::minutes(15);  // for srun to start the ranks, and planning
constexpr auto kAskLimit = std::chrono::seconds(30);        // for Slurm to answer

std::string own_program() {
  return fs::read_symlink("/proc/self/exe").string();
}

std::string seconds_text(std::chrono::steady_clock::duration time) {
  return fmt::format("{:.0f} s", std::chrono::duration<double>(time).count());
}

/// What the ranks' steps print besides their logs (srun's own words) goes to the supervisor's stderr.
Result<ChildProcess> start_step(const Scheduler& scheduler, const StepRequest& request,
                                const std::vector<std::string>& environment) {
  ALTIPLANO_ASSIGN(const std::vector<std::string> command, scheduler.step_command(request));
  return ChildProcess::start({.command = command, .environment = environment});
}

/// " (the workload manager calls it mixed)": what the workload manager believes of a host, often for minutes; empty
/// when it says nothing.
std::string word_of_scheduler(const Scheduler& scheduler, const std::string& host) {
  const auto states = scheduler.node_states({host}, std::chrono::seconds(5));
  if (!states.is_ok() || states->empty()) return {};
  return fmt::format(" (the workload manager calls it {})", states->front().state);
}

/// The last line "error: ..." of a rank's log; empty: none.
std::string last_error_of(const std::string& path) {
  constexpr std::string_view kStart = "error: ";
  const auto text = read_file(path);
  if (!text.is_ok()) return {};
  std::string error;
  for (const std::string& line : split(*text, '\n'))
    if (line.starts_with(kStart)) error = line.substr(kStart.size());
  return error;
}

}  // namespace

Status AgentSteps::start(const std::vector<std::string>& hosts) {
  ALTIPLANO_ASSIGN(ChildProcess process, start_(hosts));
  steps_.push_back({std::move(process), hosts});
  return Status::ok();
}

void AgentSteps::tend(const std::set<std::string>& lost) {
  constexpr int kMostTries = 5;
  std::vector<std::string> ended;
  for (Step& step : steps_)
    if (step.process.exit_code()) ended.insert(ended.end(), step.hosts.begin(), step.hosts.end());
  std::erase_if(steps_, [](Step& step) { return step.process.exit_code().has_value(); });
  for (const std::string& host : ended)
    if (!lost.contains(host) && ++tries_[host] <= kMostTries) (void)start({host});
}

Result<std::unique_ptr<JobSupervisor>> JobSupervisor::create(const SuperviseArguments& arguments) {
  std::unique_ptr<JobSupervisor> supervisor(new JobSupervisor(arguments));
  ALTIPLANO_RETURN_IF_ERROR(supervisor->open());
  return supervisor;
}

Status JobSupervisor::open() {
  ALTIPLANO_ASSIGN(const JobConfig config, load_training_job(arguments_.job, arguments_.start));
  options_ = config.options;
  const auto variables = environment_variables();
  ALTIPLANO_ASSIGN(scheduler_, find_scheduler(variables));
  ALTIPLANO_ASSIGN(const Tasks tasks, scheduler_.scheduler->tasks(variables));
  ALTIPLANO_ASSIGN(allocation_, scheduler_.scheduler->allocation(variables, tasks.planned));
  tasks_ = options_.is_set("slurm.ntasks_per_node") ? static_cast<int>(options_.get_int("slurm.ntasks_per_node"))
                                                    : allocation_.ranks_per_host.front();
  cpus_ = options_.is_set("slurm.cpus_per_task") ? static_cast<int>(options_.get_int("slurm.cpus_per_task"))
                                                 : std::max(1, tasks.cpus_each);
  const auto allocated = static_cast<int>(allocation_.hosts.size());
  limits_.nodes = options_.is_set("slurm.nodes")
                      ? std::min(allocated, static_cast<int>(options_.get_int("slurm.nodes")))
                      : allocated;
  limits_.min_nodes = static_cast<int>(options_.get_int("slurm.min_nodes"));
  limits_.max_restarts = static_cast<int>(options_.get_int("slurm.max_restarts"));
  deadline_ = milliseconds(static_cast<int64_t>(1000 * options_.get_float("slurm.heartbeat_seconds")));
  std::error_code error;
  run_directory_ = fs::absolute(options_.get_string("run.dir")).lexically_normal().string();
  fs::create_directories(run_directory_ + "/logs", error);
  if (error) return invalid_argument("{}: cannot be made: {}", run_directory_ + "/logs", error.message());
  // A workload manager without steps says so now.
  ALTIPLANO_RETURN_IF_ERROR(
      scheduler_.scheduler->step_command({.hosts = allocation_.hosts, .output = {}, .command = {own_program()}})
          .status());
  story_.emplace(run_directory_,
                 fmt::format("job {}.{} ({})", allocation_.job_id, allocation_.restart_count, short_host_name()), true);
  secret_ = random_hex(32);
  ALTIPLANO_ASSIGN(server_, HeartbeatServer::listen(secret_, allocation_.hosts));
  agents_.emplace([this](const std::vector<std::string>& hosts) {
    StepRequest request;
    request.hosts = hosts;
    request.are_ranks = false;
    request.command = {own_program(),  "agent",
                       "--run",        run_directory_,
                       "--job",        allocation_.job_id,
                       "--supervisor", short_host_name(),
                       "--restarts",   fmt::to_string(allocation_.restart_count),
                       "--deadline",   fmt::format("{:.1f}", std::chrono::duration<double>(deadline_).count())};
    return start_step(*scheduler_.scheduler, request,
                      {"ALTIPLANO_SECRET=" + secret_, "ALTIPLANO_HEARTBEATS=" + server_->address()});
  });
  return agents_->start(allocation_.hosts);
}

std::string JobSupervisor::start_name() const {
  return fmt::format("{}.{}.{}", allocation_.job_id, allocation_.restart_count, num_starts_);
}

int64_t JobSupervisor::newest_checkpoint() const {
  int64_t newest = 0;
  for (const StepFolder& folder : list_step_folders(options_.get_string("checkpoint.dir")))
    newest = std::max(newest, folder.step);
  return newest;
}

/// What is due while nothing else is: the sign of life, agents that ended, strangers that knocked.
void JobSupervisor::tend() {
  constexpr auto kSignEvery = std::chrono::seconds(1);
  if (Clock::now() - last_sign_ >= kSignEvery) {
    last_sign_ = Clock::now();
    const Status written = write_sign_of_life(run_directory_, fmt::format("{} {}", start_name(), ++signs_));
    if (!written) print_err("note: {}\n", written.to_string());
  }
  for (const std::string& refusal : server_->take_refusals()) story_->tell(refusal);
  agents_->tend(lost_);
  std::this_thread::sleep_for(kTick);
}

/// A node whose agent does not come within a minute is none.
void JobSupervisor::await_agents() {
  const auto until = Clock::now() + kAgentsLimit;
  while (server_->last_heard().size() < allocation_.hosts.size() && Clock::now() < until && stop_signal() == 0) tend();
  const auto heard = server_->last_heard();
  for (const std::string& host : allocation_.hosts)
    if (!heard.contains(host) && stop_signal() == 0) {
      lost_.insert(host);
      story_->tell(fmt::format("{} did not answer within {}: it is given up{}", host, seconds_text(kAgentsLimit),
                               word_of_scheduler(*scheduler_.scheduler, host)));
    }
}

/// Whether one of `hosts` is lost; says of each host of the job that fell silent that it is given up.
bool JobSupervisor::note_silent(const std::vector<std::string>& hosts) {
  const auto heard = server_->last_heard();
  for (const std::string& host : allocation_.hosts) {
    const auto found = heard.find(host);
    if (lost_.contains(host) || found == heard.end() || Clock::now() - found->second < deadline_) continue;
    lost_.insert(host);
    story_->tell(fmt::format("nothing is heard from {} for {}: it is given up{}", host, seconds_text(deadline_),
                             word_of_scheduler(*scheduler_.scheduler, host)));
  }
  return std::ranges::any_of(hosts, [&](const std::string& host) { return lost_.contains(host); });
}

/// Until each of the hosts was heard of after `since` or is given up: why a start ended may be a node that died.
void JobSupervisor::await_news_of(const std::vector<std::string>& hosts, Clock::time_point since) {
  for (const auto until = Clock::now() + 2 * deadline_; Clock::now() < until; tend()) {
    (void)note_silent(hosts);
    const auto heard = server_->last_heard();
    if (std::ranges::all_of(hosts, [&](const std::string& host) {
          const auto found = heard.find(host);
          return lost_.contains(host) || (found != heard.end() && found->second > since);
        }))
      return;
  }
}

/// With fewer ranks than at first the number of replicas follows the ranks; the global batch stays what it was.
std::vector<std::string> JobSupervisor::smaller_settings() const {
  return {"parallel.data_parallel_size=auto", "train.gradient_accumulation_steps=auto", "train.micro_batch_size=auto",
          fmt::format("train.global_batch_size={}", global_batch_)};
}

Status JobSupervisor::check_plan(int num_ranks, JobArguments job) {
  ALTIPLANO_ASSIGN(JobConfig config, load_training_job(std::move(job), arguments_.start, false));
  JobRequest request;
  request.num_ranks = num_ranks;
  request.takes_cached_plan = true;
  request.only_first_of_stage = true;
  return prepare_job(std::move(config), request).status();
}

/// The largest number of these hosts over which the model can be divided; empty: none that is not too small.
std::vector<std::string> JobSupervisor::plan_for(std::vector<std::string> hosts) {
  for (; static_cast<int>(hosts.size()) >= limits_.min_nodes; hosts.pop_back()) {
    if (rank_count(hosts) >= full_ranks_) return hosts;  // as the job file says, which the ranks judge
    JobArguments job = arguments_.job;
    for (const std::string& setting : smaller_settings()) job.overrides.push_back(setting);
    const Status status = check_plan(rank_count(hosts), std::move(job));
    if (status.is_ok()) return hosts;
    story_->tell(
        fmt::format("no plan for {}: {}", counted(static_cast<int64_t>(hosts.size()), "node"), status.to_string()));
  }
  return {};
}

Result<std::vector<std::string>> JobSupervisor::ranks_command(const std::vector<std::string>& hosts) {
  JobArguments job = arguments_.job;
  if (rank_count(hosts) < full_ranks_)
    for (const std::string& setting : smaller_settings()) job.overrides.push_back(setting);
  std::vector<std::string> command = job_command("train", job);
  TrainStart start = arguments_.start;
  // Where to begin was said for the first start; later ones go on from what that has saved.
  if (num_starts_ > 0 || allocation_.restart_count > 0) start.resume = "auto";
  add_start_options(command, start);
  return command;
}

/// Shows what the first rank has written since.
void JobSupervisor::follow_log(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.seekg(static_cast<std::streamoff>(log_read_))) return;
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  log_read_ += text.size();
  print_out_text(text);
  flush_out();
}

/// The ranks' own last words, each once: the first failure is among them.
void JobSupervisor::tell_errors(const std::string& folder, size_t num_ranks) {
  constexpr size_t kMost = 3;
  std::vector<std::string> told;
  for (size_t rank = 0; rank < num_ranks && told.size() < kMost; ++rank) {
    const std::string error = last_error_of(fmt::format("{}/rank-{}.log", folder, rank));
    if (error.empty() || std::ranges::find(told, error) != told.end()) continue;
    told.push_back(error);
    story_->tell(fmt::format("rank {} said: {}", rank, error));
  }
}

Result<StartEnd> JobSupervisor::start_ranks(const std::vector<std::string>& hosts) {
  const std::string folder = fmt::format("{}/logs/job-{}", run_directory_, start_name());
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return runtime_failure("{}: cannot be made: {}", folder, error.message());
  fs::remove(run_directory_ + "/end.json", error);  // of a start before; Slurm may count its jobs anew
  const int64_t before = newest_checkpoint();
  StepRequest request;
  request.hosts = hosts;
  request.tasks_per_host = tasks_;
  request.cpus_per_task = cpus_;
  request.output = folder + "/rank-{task}.log";
  ALTIPLANO_ASSIGN(request.command, ranks_command(hosts));
  story_->tell(fmt::format("start {}: {} on {} ({}){}", start_name(), counted(rank_count(hosts), "rank"),
                           counted(static_cast<int64_t>(hosts.size()), "node"), join(hosts, ", "),
                           before > 0 ? fmt::format(", the newest checkpoint is that of step {}", before) : ""));
  log_read_ = 0;
  StartEnd end;
  {
    ALTIPLANO_ASSIGN(ChildProcess step,
                     start_step(*scheduler_.scheduler, request, {"ALTIPLANO_START=" + start_name()}));
    ALTIPLANO_RETURN_IF_ERROR(watch(step, hosts, end));
  }
  follow_log(folder + "/rank-0.log");
  const auto record = read_end_record(run_directory_);
  end.has_record = record && record->start == start_name();
  end.is_done = end.has_record && record->is_done;
  if (end.has_record)
    story_->tell(fmt::format("all {} agreed after step {}: {}", counted(record->ranks, "rank"), record->step,
                             end.is_done ? "done" : "saved and stopped"));
  else
    await_news_of(hosts, Clock::now());
  if (!end.has_record) tell_errors(folder, static_cast<size_t>(rank_count(hosts)));
  end.made_progress = newest_checkpoint() > before;
  end.is_asked_to_stop = stop_signal() != 0;
  end.lost = lost_;
  return end;
}

/// Until the step has ended, of itself or because one of its nodes is gone.
Status JobSupervisor::watch(ChildProcess& step, const std::vector<std::string>& hosts, StartEnd& end) {
  const std::string log = fmt::format("{}/logs/job-{}/rank-0.log", run_directory_, start_name());
  const auto begin = Clock::now();
  bool is_killed = false;
  while (!step.exit_code()) {
    tend();
    follow_log(log);
    if (stop_signal() != 0 && !is_stop_passed_on_) {
      is_stop_passed_on_ = true;
      story_->tell(fmt::format("{} heard: the ranks are told to save and stop", signal_name(stop_signal())));
      step.signal(SIGUSR1);  // srun hands it on; TERM would end it
    }
    if (is_killed) continue;
    const bool never_began = log_read_ == 0 && Clock::now() - begin > kFirstWordLimit;
    if (never_began)
      story_->tell(
          fmt::format("the first rank said nothing for {}: the start is ended", seconds_text(kFirstWordLimit)));
    if (!note_silent(hosts) && !never_began) continue;
    // srun itself would wait for the dead node; killed, it takes the other tasks with it within a second.
    is_killed = true;
    step.signal_group(SIGKILL);
  }
  end.exit_code = *step.exit_code();
  if (is_killed) std::this_thread::sleep_for(std::chrono::seconds(2));
  return Status::ok();
}

/// Back into the queue, unless somebody has ended the job or put it there already. The exit code.
int JobSupervisor::requeue(const Decision& decision) {
  if (arguments_.no_requeue) {
    story_->tell(fmt::format("{}: the job ends with exit code {}", decision.reason, decision.exit_code));
    return decision.exit_code;
  }
  const auto job = scheduler_.scheduler->job_state(allocation_.job_id, kAskLimit);
  if (job.is_ok() && !job->is_running) {
    story_->tell(fmt::format("{}; the job is {}, nothing is left to do", decision.reason, job->state));
    return decision.exit_code;
  }
  story_->tell(decision.reason + ": the job is requeued");
  const Status status = scheduler_.scheduler->requeue(allocation_.job_id, kAskLimit);
  if (!status) story_->tell("it could not be: " + status.to_string());
  return decision.exit_code;
}

Result<int> JobSupervisor::run() {
  story_->tell(fmt::format("{} allocated ({}), {} train, {} a node; heartbeats on {}",
                           counted(static_cast<int64_t>(allocation_.hosts.size()), "node"),
                           join(allocation_.hosts, ", "), limits_.nodes, counted(tasks_, "rank"), server_->address()));
  ALTIPLANO_ASSIGN(const BatchSizes batch, job_batch(options_, limits_.nodes * tasks_));
  global_batch_ = batch.global;
  await_agents();
  full_ranks_ = limits_.nodes * tasks_;
  std::vector<std::string> hosts = plan_for(hosts_for_start(allocation_.hosts, lost_, limits_.nodes));
  for (int restarts = 0;; ++num_starts_) {
    Decision decision;
    if (hosts.empty() || stop_signal() != 0) {
      const char* why = hosts.empty() ? "too few nodes are left" : "asked to stop before the ranks were started";
      return requeue({NextMove::kRequeue, {}, exit_code_of(StatusCode::kStoppedEarly), 0, why});
    }
    ALTIPLANO_ASSIGN(const StartEnd end, start_ranks(hosts));
    decision = decide_after(limits_, end, allocation_.hosts, hosts, restarts);
    if (decision.move == NextMove::kRequeue) return requeue(decision);
    if (decision.move != NextMove::kRestart) {
      story_->tell(fmt::format("{}: exit code {}", decision.reason, decision.exit_code));
      return decision.exit_code;
    }
    restarts = decision.restarts;
    story_->tell(fmt::format("{}; {} left, going on with them", decision.reason,
                             counted(static_cast<int64_t>(decision.hosts.size()), "node")));
    hosts = plan_for(decision.hosts);
  }
}

}  // namespace altiplano
