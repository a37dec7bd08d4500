#pragma once
// How the ranks of a job come to start from one checkpoint. The first rank proposes the newest one; every rank reads
// what it holds of it and its share of the files, so that each byte is checked by some rank; when one of them finds
// damage all leave this checkpoint out and the first rank proposes the next.
#include <functional>
#include <string>
#include <vector>

#include "framework/api/comm.hpp"
#include "framework/checkpoint/restore.hpp"
#include "framework/runtime/job.hpp"
#include "framework/runtime/resume_settings.hpp"

namespace altiplano {

struct ResumeRequest {
  std::string directory, resume;  ///< as find_checkpoint takes them
  Status ready;                   ///< first rank: not ok ends the start of all ranks
  /// First rank only, before anything is read: what refuses this checkpoint for this job.
  std::function<Status(const Checkpoint&)> check;
  /// Reads what this rank holds.
  std::function<Status(const Checkpoint&)> restore;
};

/// Collective. What was found and, on the first rank, what was left out and why. Ranks that did not find the mistake
/// themselves get kCancelled with the first one's words.
Result<FoundCheckpoint> restore_together(Rendezvous& rendezvous, const ResumeRequest& request);

/// Whether the job may go on from this checkpoint: its model and its settings. Notices of what has changed.
Result<std::vector<std::string>> check_resume(const Job& job, const BatchSource& source, const Checkpoint& checkpoint);

/// For a start of the run `run_id`: one more than that of any checkpoint of this run in the folder.
int64_t next_attempt(const std::string& directory, const CheckpointInfo& resumed);

}  // namespace altiplano
