#pragma once
// Starts the ranks of a job on this host and keeps watch over them.
//
// Every rank is a process group of its own that dies with the launcher. Its output goes to <log_directory>/rank-N.log
// (appended); rank 0's output also to the console as it is, the other ranks' stderr line by line as "rank N: ...".
// SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 are passed on; a second SIGINT kills. The first rank that fails ends the job:
// SIGTERM to the others, SIGKILL after `kill_grace`. A rank that ends early with 0 is no failure by itself; its peers'
// communicators say so if they still need it.
#include <chrono>
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

struct LaunchRequest {
  int ranks = 1;
  std::vector<std::string> command;  ///< of every rank; the first word is searched in PATH
  std::string log_directory;         ///< made when missing
  std::string job_id;                ///< empty: a new one
  int console_out = 1, console_err = 2;
  std::chrono::milliseconds kill_grace{5000};
  bool pin_cpus = false;  ///< gives each rank its share of the affinity mask; otherwise ranks share the mask
};

struct LaunchOutcome {
  int exit_code = 0;     ///< of the rank that failed first, 128 + n for signal n; 75 when ranks saved and stopped early
  int failed_rank = -1;  ///< -1: none
  std::string message;   ///< of a failure: host, rank, exit code or signal, and the rank's own last error line
};

/// Runs the job to its end. A Status only when ranks could not be started (logs, processes, sockets). Uses signalfd and
/// waits for its own children only; to be called by the thread that may receive the signals.
Result<LaunchOutcome> launch_ranks(const LaunchRequest& request);

}  // namespace altiplano
