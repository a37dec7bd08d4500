// altiplano launch: the ranks of a job on this host, each an `altiplano train` of its own.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/launch/launcher.hpp"

namespace altiplano {
namespace {

struct LaunchArguments {
  JobArguments job;
  int ranks = 1;
  bool pin = false;
};

std::vector<std::string> rank_command(const LaunchArguments& arguments, const std::vector<std::string>& rest) {
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string(), "train", "-c",
                                      arguments.job.file};
  for (const auto& assignment : arguments.job.overrides) command.insert(command.end(), {"--set", assignment});
  for (const auto& folder : arguments.job.plugin_path) command.insert(command.end(), {"--plugin-path", folder});
  command.insert(command.end(), rest.begin(), rest.end());
  return command;
}

/// The job file is read here too, so that its mistakes are reported once and not by every rank.
Status launch(const LaunchArguments& arguments, const std::vector<std::string>& rest, int& exit_code) {
  ALTIPLANO_ASSIGN(const JobConfig job, load_job(arguments.job));
  LaunchRequest request;
  request.ranks = arguments.ranks;
  request.command = rank_command(arguments, rest);
  request.log_directory = job.options.get_string("run.dir") + "/logs";
  request.pin_cpus = arguments.pin;
  std::fflush(stdout);
  ALTIPLANO_ASSIGN(const LaunchOutcome outcome, launch_ranks(request));
  if (outcome.failed_rank >= 0) fmt::print(stderr, "error: {}\n", outcome.message);
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
  command->add_option("-n,--ranks", arguments->ranks, "Processes to start, one per device")
      ->required()
      ->check(CLI::Range(1, 4096))
      ->type_name("RANKS");
  command->add_flag("--pin", arguments->pin,
                    "Give each rank its own share of the processors; otherwise all ranks may use all");
  command->allow_extras();
  command->footer(
      command->get_footer() +
      "\nOther options are those of `altiplano train`, which every rank runs. Logs: <run.dir>/logs/rank-N.log.");
  command->callback([command, arguments, &exit_code] {
    int code = 0;
    try {
      const Status status = launch(*arguments, command->remaining(), code);
      exit_code = status.is_ok() ? code : report(status);
    } catch (const std::exception& error) {
      exit_code = report(runtime_failure("internal error: {}", error.what()));
    }
  });
}

}  // namespace altiplano
