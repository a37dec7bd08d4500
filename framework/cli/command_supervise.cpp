// altiplano supervise: the ranks of a job on all its nodes, again on those that are left when some die.
#include <fmt/format.h>

#include <memory>

#include "framework/cli/commands.hpp"
#include "framework/cli/job_supervisor.hpp"
#include "framework/launch/stop_signal.hpp"
#include "framework/launch/task_ranks.hpp"

namespace altiplano {
namespace {

Status supervise(const SuperviseArguments& arguments, int& exit_code) {
  catch_stop_signals();
  ALTIPLANO_RETURN_IF_ERROR(check_is_only_task("supervise", environment_variables()));
  ALTIPLANO_ASSIGN(auto supervisor, JobSupervisor::create(arguments));
  ALTIPLANO_ASSIGN(exit_code, supervisor->run());
  return Status::ok();
}

}  // namespace

void add_supervise_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SuperviseArguments>();
  CLI::App* command =
      add_command(app, "supervise", "Train on all nodes of a job, and on those that are left when some die", R"(
    altiplano supervise -c job.yaml
    altiplano supervise -c job.yaml --no-requeue)");
  add_job_arguments(*command, arguments->job);
  add_train_start(*command, arguments->start);
  command->add_flag("--no-requeue", arguments->no_requeue,
                    "End with exit code 75 where the job would be put back into the queue");
  command->footer(command->get_footer() +
                  "\nRuns once, in the job's script. What it decides and why stands in <run.dir>/story.log.");
  on_run_for_code(command, exit_code, [arguments](int& code) { return supervise(*arguments, code); });
}

}  // namespace altiplano
