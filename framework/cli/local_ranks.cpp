#include "framework/cli/local_ranks.hpp"

#include <filesystem>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/cli/commands.hpp"
#include "framework/launch/allocation.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/launcher.hpp"
#include "framework/launch/task_ranks.hpp"

namespace altiplano {
namespace {

Status launch(const LocalRanks& ranks, int& exit_code) {
  LaunchRequest request;
  request.ranks = ranks.ranks;
  request.command = ranks.command;
  request.log_directory = ranks.log_directory;
  request.plan = ranks.plan;
  flush_out();
  ALTIPLANO_ASSIGN(const LaunchOutcome outcome, launch_ranks(request));
  if (outcome.failed_rank >= 0) print_err("error: {}\n", outcome.message);
  if (outcome.output_error != 0) note_output_error(outcome.output_error);
  exit_code = outcome.exit_code;
  return Status::ok();
}

}  // namespace

std::vector<std::string> job_command(const std::string& name, const JobArguments& job) {
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string(), name, "-c", job.file};
  for (const auto& assignment : job.overrides) command.insert(command.end(), {"--set", assignment});
  for (const auto& folder : job.plugin_path) command.insert(command.end(), {"--plugin-path", folder});
  return command;
}

void on_local_ranks(CLI::App* command, int& exit_code, const int& ranks, std::function<Result<LocalRanks>()> check,
                    std::function<Status(const RankEnvironment&, Rendezvous&)> run) {
  auto body = [check = std::move(check), run = std::move(run), &ranks,
               name = command->get_name()](int& code) -> Status {
    ALTIPLANO_ASSIGN(const RankEnvironment environment, rank_environment());
    if (!environment.rendezvous.empty()) {
      ALTIPLANO_ASSIGN(auto rendezvous, join_job(environment));
      return run(environment, *rendezvous);
    }
    ALTIPLANO_RETURN_IF_ERROR(check_is_only_task(name, environment_variables()));
    if (ranks > 1) {
      ALTIPLANO_ASSIGN(const LocalRanks local, check());
      return launch(local, code);
    }
    InprocRendezvous alone(std::make_shared<InprocWorld>(1), RankId(0));
    return run(environment, alone);
  };
  on_run_for_code(command, exit_code, std::move(body));
}

}  // namespace altiplano
