#pragma once
// Restoring: find the newest complete checkpoint, or a named one, and read any boxes of its tensors, whatever plan and
// number of ranks wrote it.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/checkpoint/manifest.hpp"

namespace altiplano {

/// What one rank wants of one tensor: host memory, row-major over box.extents.
struct TensorTarget {
  std::string name;
  DType dtype = DType::kF32;
  Shape global;
  Box box;
  void* data = nullptr;
};

/// How much of a checkpoint is looked at when it is opened.
enum class CheckLevel : uint8_t { kSizes, kChecksums };

class Checkpoint {
 public:
  /// Refuses a folder without manifest, a damaged manifest or shard, another step than the folder's name says
  /// (is_misnamed): the message names the file, and the dataset where it can.
  static Result<Checkpoint> open(const std::string& path, CheckLevel level);
  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  /// Reads every target. Refuses, before anything is read: tensors the checkpoint lacks (all of them named), another
  /// dtype or shape, boxes it does not cover. Every part that is read is checked against its own checksum too. Any
  /// number of ranks at the same time.
  Status restore(std::span<const TensorTarget> targets) const;
  /// Compares the checksums of every `parts`-th shard from the `part`-th on: all parts together, every byte.
  Status verify_share(int part, int parts) const;

 private:
  Checkpoint(std::string path, Manifest manifest) : path_(std::move(path)), manifest_(std::move(manifest)) {}
  std::string path_;
  Manifest manifest_;
};

/// Whether a checkpoint was refused for holding another step than its folder's name says: a copy, not damage.
bool is_misnamed(const Status& refusal);

/// Every damage found, one line each; empty: all is well. Looks at every byte, index included.
std::vector<std::string> verify_checkpoint(const std::string& path);

struct SkippedCheckpoint {
  std::string path;
  int64_t step = 0;
  std::string reason;  ///< names the file
};
struct FoundCheckpoint {
  std::optional<Checkpoint> checkpoint;       ///< nothing: start afresh
  std::vector<SkippedCheckpoint> skipped;     ///< newer ones that are damaged: for the log
  std::vector<SkippedCheckpoint> unfinished;  ///< saves of later steps that never finished: for the log
};

/// The newest is that of the run's latest start, and of these the largest step (by number): steps that a run left
/// behind when it went back to an earlier one do not come again. resume: "auto" (the newest complete one; afresh only
/// when there is no checkpoint at all), "must" (the newest complete one), "none" (afresh), or a path of one checkpoint
/// or of a directory of them. kNoCheckpoint when one is required and there is none, or none that can be read: the
/// message lists each with its reason. `excluded` are known to be damaged: they are not looked at and listed among the
/// skipped.
Result<FoundCheckpoint> find_checkpoint(const std::string& directory, const std::string& resume, CheckLevel level,
                                        const std::vector<SkippedCheckpoint>& excluded = {});

/// A run must not share a directory with another run's checkpoints: the message says whose they are. For a run that
/// starts afresh those that cannot be read count as another's, too.
Status check_no_other_run(const std::string& directory, const std::string& run_id, bool counts_unreadable = true);

}  // namespace altiplano
