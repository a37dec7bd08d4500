#pragma once
// Starts the ranks of a job on this host and keeps watch over them.
//
// Every rank is a process group of its own that dies with the launcher. Its output goes to <log_directory>/rank-N.log,
// appended below a line that names the job; rank 0's output also to the console as it is, the other ranks' stderr line
// by line as "rank N: ...", but for errors, which are held back to the end: the first failure is the outcome's message,
// what others say of it goes to their logs only. The stop signals (stop_signal.hpp) are passed on; a second SIGINT
// kills.
//
// The first rank that fails ends the job: who waits at the rendezvous is told, SIGTERM to the others, SIGKILL after
// `kill_grace`. A rank that is stopped (SIGSTOP) is noted at once and fails after `stopped_limit`. A rank that reports
// (see LaunchRequest) and ends with 0 without being done has failed; any other that ends early with 0 has not.
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
  int cpus_per_rank = 0;  ///< compute threads of each rank, at most an equal share of the affinity mask; 0: that share
  int64_t end_time = 0;   ///< told to the ranks, which have to be done by then; 0: no limit
  int console_out = 1, console_err = 2;
  std::chrono::milliseconds kill_grace{2000};
  std::chrono::milliseconds stopped_limit{0};  ///< 0: a stopped rank is waited for
  /// The ranks are `altiplano train`: they say on their RankBoard when they are done, and start with the stop signals
  /// blocked until they handle them, so that one that comes early is not lost and kills nobody.
  bool ranks_report = false;
  std::string plan;       ///< text, proved for all ranks, which take it from ALTIPLANO_PLAN; empty: they plan
  bool pin_cpus = false;  ///< gives each rank its share of the affinity mask; otherwise ranks share the mask
};

struct LaunchOutcome {
  int exit_code = 0;     ///< of the rank that failed first, 128 + n for signal n; 75 when ranks saved and stopped early
  int failed_rank = -1;  ///< -1: none
  int output_error = 0;  ///< errno of the first output of rank 0 that the console did not take; 0: none
  std::string message;   ///< of a failure: rank, host, exit code or signal, step, the rank's own last error line
};

/// Compute threads that each rank is told to use.
int threads_of_rank(const LaunchRequest& request);

/// Runs the job to its end. A Status only when ranks could not be started (logs, processes, sockets). Uses signalfd and
/// waits for its own children only; to be called by the thread that may receive the signals.
Result<LaunchOutcome> launch_ranks(const LaunchRequest& request);

}  // namespace altiplano
