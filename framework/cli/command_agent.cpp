// altiplano agent: on every node of a supervised job, started by altiplano supervise. Tells the supervisor that its
// node lives, and puts the job back into the queue when the supervisor's node is dead.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "framework/cli/commands.hpp"
#include "framework/launch/allocation.hpp"
#include "framework/launch/heartbeat.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/rank_environment.hpp"
#include "framework/launch/stop_signal.hpp"
#include "framework/launch/story.hpp"

namespace altiplano {
namespace {

struct AgentArguments {
  std::string run_directory, job_id, supervisor;
  int restarts = 0;
  double deadline = 10;
};

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

/// Whether the supervisor writes its sign of life, as seen over `limit`.
bool shows_life(const std::string& run_directory, std::chrono::milliseconds limit) {
  const std::string before = sign_of_life(run_directory);
  std::this_thread::sleep_for(limit);
  return sign_of_life(run_directory) != before;
}

/// The supervisor's node is dead. Agents take turns, so that one of them requeues the job and the others see it.
Status requeue_for(const AgentArguments& arguments, const Story& story) {
  constexpr auto kTurn = std::chrono::seconds(3);
  constexpr auto kLimit = std::chrono::seconds(30);
  ALTIPLANO_ASSIGN(const Tasks tasks, find_tasks(environment_variables()));
  std::this_thread::sleep_for(kTurn * tasks.index);
  ALTIPLANO_ASSIGN(const FoundScheduler found, find_scheduler(environment_variables()));
  ALTIPLANO_ASSIGN(const JobState job, found.scheduler->job_state(arguments.job_id, kLimit));
  if (!job.is_running || job.restart_count != arguments.restarts) return Status::ok();  // somebody was faster
  story.tell(
      fmt::format("nothing is heard from the supervisor on {} for {:.0f} s, and it writes nothing: its node is "
                  "given up and job {} requeued",
                  arguments.supervisor, arguments.deadline, arguments.job_id));
  return found.scheduler->requeue(arguments.job_id, kLimit);
}

Status agent(const AgentArguments& arguments) {
  ignore_stop_signals();  // meant for the ranks; this process goes when the supervisor says so
  AgentRequest request;
  request.address = process_environment("ALTIPLANO_HEARTBEATS").value_or("");
  request.secret = process_environment("ALTIPLANO_SECRET").value_or("");
  request.name = short_host_name();
  request.deadline = milliseconds_of(arguments.deadline);
  request.interval = std::max(std::chrono::milliseconds(200), request.deadline / 8);
  if (request.address.empty() || request.secret.empty())
    return invalid_argument("ALTIPLANO_HEARTBEATS and ALTIPLANO_SECRET are not set: altiplano supervise starts agents");
  const Story story(arguments.run_directory,
                    fmt::format("job {}.{} (agent on {})", arguments.job_id, arguments.restarts, request.name), false);
  for (;;) {
    const AgentEnd end = send_heartbeats(request);
    if (end == AgentEnd::kRefused)
      return invalid_argument("{}: the supervisor refused this agent: another secret", request.address);
    if (end != AgentEnd::kSilent) return Status::ok();
    // Cut off from it, or it is dead: the shared file system knows.
    if (!shows_life(arguments.run_directory, request.deadline)) break;
  }
  const Status status = requeue_for(arguments, story);
  if (!status) story.tell("job not requeued: " + status.to_string());
  return status;
}

}  // namespace

void add_agent_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<AgentArguments>();
  CLI::App* command = add_command(app, "agent", "Say that this node lives (started by altiplano supervise)", R"(
    altiplano supervise -c job.yaml)");
  command->group("");  // not for people
  command->add_option("--run", arguments->run_directory, "The run's folder")->required()->type_name("DIR");
  command->add_option("--job", arguments->job_id, "The job's id")->required()->type_name("ID");
  command->add_option("--supervisor", arguments->supervisor, "The supervisor's host")->required()->type_name("HOST");
  command->add_option("--restarts", arguments->restarts, "How often the job was requeued before this");
  command->add_option("--deadline", arguments->deadline, "Seconds without a word after which a side is given up")
      ->check(CLI::Range(0.5, 3600.0));
  on_run(command, exit_code, [arguments] { return agent(*arguments); });
}

}  // namespace altiplano
