#pragma once
// Commands that run on one rank or several of this host: alone in this process, or as processes of the same command.
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "framework/api/comm.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/launch/rank_environment.hpp"

namespace altiplano {

struct LocalRanks {
  int ranks = 1;
  std::vector<std::string> command;  ///< of every rank
  std::string log_directory;
  std::string plan = {};  ///< LaunchRequest::plan
};

/// This program, the subcommand `name` and the job's arguments, for ranks.
std::vector<std::string> job_command(const std::string& name, const JobArguments& job);

/// When `command` is called: `run` in a process that a launcher started as a rank, or for one rank; for several,
/// `check` (which refuses what can be refused, once, and says how to start them) and the launcher. Errors and the exit
/// code as on_run does. `ranks` must live until then.
void on_local_ranks(CLI::App* command, int& exit_code, const int& ranks, std::function<Result<LocalRanks>()> check,
                    std::function<Status(const RankEnvironment&, Rendezvous&)> run);

}  // namespace altiplano
