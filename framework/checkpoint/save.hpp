#pragma once
// Saving. Every rank: save_shard(). Then all ranks agree that every shard is there (the caller's barrier). Then rank 0:
// publish_checkpoint(). A process may die anywhere: before the rename nothing is seen, after it everything is there.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/checkpoint/manifest.hpp"
#include "framework/checkpoint/retention.hpp"

namespace altiplano {

/// What one rank holds of one tensor, in host memory, row-major over box.extents. Ranks together hold each element
/// exactly once; an empty box is fine.
struct TensorPart {
  std::string name;
  DType dtype = DType::kF32;
  Shape global;
  Box box;
  const void* data = nullptr;
  std::string role;  ///< a word for readers: "parameter", "master", "optimizer_state"
};

/// Bytes of the data itself; files add a few KiB.
int64_t payload_bytes(std::span<const TensorPart> parts);

/// Writes <directory>/.tmp-step-N[.attempt]/rank-K.h5 and its record, both on disk when it returns. On failure (disk
/// full) the rank's own files are gone and the Status says why; older checkpoints are untouched.
Status save_shard(const std::string& directory, int64_t step, int rank, std::span<const TensorPart> parts,
                  int64_t attempt = 1);

struct PublishReport {
  std::string path;  ///< of the new checkpoint
  int64_t bytes = 0;
  std::vector<int64_t> kept;  ///< steps of this run now there, ascending
  std::vector<std::string> pruned;
};

/// Checks that the shards cover every tensor exactly once, writes index and manifest, renames the folder, moves
/// `latest`, then removes the checkpoints of this run that `keep` lets go. Never removes the one just written, nor one
/// of another run, nor an unreadable one. An earlier folder of the same step is replaced in one instant if it is of
/// this run and of no later start, else the Status says whose it is. `may_publish` is asked last, right before the
/// rename.
Result<PublishReport> publish_checkpoint(const std::string& directory, const CheckpointInfo& info, const KeepRule& keep,
                                         const std::function<Status()>& may_publish = {});

/// Removes one checkpoint: out of the readers' sight by one rename, then its files. Refuses what is_held_by_link.
Status remove_checkpoint(const std::string& path);
/// Removes what an unfinished save of this step left.
void discard_unfinished(const std::string& directory, int64_t step, int64_t attempt = 1);
/// Removes what unfinished saves and removals of dead runs left (their paths, for the log), and puts back a checkpoint
/// that stepped aside for one that never came. Before training, by one rank.
std::vector<std::string> remove_unfinished(const std::string& directory);

}  // namespace altiplano
