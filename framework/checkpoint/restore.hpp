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

/// How much of a checkpoint is looked at when it is opened. One rank checks sums and tells the others the path; they
/// check sizes.
enum class CheckLevel : uint8_t { kSizes, kChecksums };

class Checkpoint {
 public:
  /// Refuses a folder without manifest, a damaged manifest or shard: the message names the file, and the dataset where
  /// it can.
  static Result<Checkpoint> open(const std::string& path, CheckLevel level);
  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  /// Reads every target. Refuses, before anything is read: tensors the checkpoint lacks (all of them named), another
  /// dtype or shape, boxes it does not cover. A part that is read whole is checked against its own checksum too. Any
  /// number of ranks at the same time.
  Status restore(std::span<const TensorTarget> targets) const;

 private:
  Checkpoint(std::string path, Manifest manifest) : path_(std::move(path)), manifest_(std::move(manifest)) {}
  std::string path_;
  Manifest manifest_;
};

/// Every damage found, one line each; empty: all is well. Looks at every byte, index included.
std::vector<std::string> verify_checkpoint(const std::string& path);

struct SkippedCheckpoint {
  std::string path, reason;
};
struct FoundCheckpoint {
  std::optional<Checkpoint> checkpoint;    ///< nothing: start afresh
  std::vector<SkippedCheckpoint> skipped;  ///< newer ones that are damaged: for the log
};

/// resume: "auto" (the newest complete one; afresh only when there is no checkpoint at all), "must" (the newest
/// complete one), "none" (afresh), or a path of one checkpoint or of a directory of them. kNoCheckpoint when one is
/// required and there is none, or none that can be read: the message lists each with its reason.
Result<FoundCheckpoint> find_checkpoint(const std::string& directory, const std::string& resume, CheckLevel level);

/// A run that starts afresh must not share a directory with another run's checkpoints: the message says whose they are.
Status check_no_other_run(const std::string& directory, const std::string& run_id);

}  // namespace altiplano
