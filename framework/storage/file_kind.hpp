#pragma once
// What a file or folder is that a person named, told by its first bytes or by what lies in it: so that one given in the
// place of another is refused by what it is and not by its first unknown word. Nothing is parsed; what cannot be told
// is kOther and left to its reader.
#include <cstdint>
#include <string>

#include "framework/base/status.hpp"

namespace altiplano {

enum class FileKind : uint8_t {
  kOther,
  kJob,
  kPlan,
  kCluster,
  kData,         ///< HDF5: tokens, or the shard of a checkpoint
  kText,         ///< none of the above, without a NUL in its first bytes
  kProgram,      ///< a program or a shared object (ELF)
  kCheckpoint,   ///< a folder with a manifest
  kCheckpoints,  ///< a folder of checkpoints
  kRun,          ///< a run's folder
};

/// kOther too for what is missing or cannot be read. Never waits.
FileKind file_kind_of(const std::string& path);

/// kInvalidArgument "plan.yaml: is a plan, not a job file; give it with --plan" when `path` is certainly something else
/// than `wanted`; ok otherwise, also when it is nothing that can be told.
Status check_file_kind(const std::string& path, FileKind wanted);

/// For an output of kind `own` (kOther: a picture, a trace): kInvalidArgument when a file of another kind lies at
/// `path`.
Status check_replaceable(const std::string& path, FileKind own);

}  // namespace altiplano
