#pragma once
// Provenance: what a start of a run was made of, kept in the run's folder as <run.dir>/provenance/NNNN, one folder per
// start, never changed afterwards:
//
//   start.yaml      version, commit, compiler, date, host, ranks, command line, folder, environment that matters
//   job.yaml        the job file as it was given
//   effective.yaml  every key's value and where it came from; a job file that loads again
//   plan.yaml       the plan; `--plan` replays it
#include <string>

#include "framework/config/job_config.hpp"

namespace altiplano {

struct StartFacts {
  std::string host, job_id;
  int ranks = 1;
  bool has_launcher = false;  ///< the parent process is `altiplano launch`
  std::string plan;           ///< its text
  std::string plan_file;      ///< it came from; empty: planned
};

/// Writes the folder of this start (rank 0, once, after the run's folder is its own). The path of the folder; refuses
/// where nothing can be written.
Result<std::string> write_provenance(const JobConfig& job, const StartFacts& facts);

/// The effective.yaml of a run's folder, of the newest start that has kept one; empty when none has.
std::string newest_effective_config(const std::string& run_directory);

/// "0123456789ab", "0123456789ab-dirty", or "unknown" when built outside of a repository.
const char* git_commit();

/// Whether a variable of the environment can matter to a run: those of Altiplano, Slurm, threads and libraries.
bool is_kept_variable(const std::string& name);

}  // namespace altiplano
