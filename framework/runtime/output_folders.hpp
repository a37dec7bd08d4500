#pragma once
// What a run writes into, tried before anything else is done.
#include "framework/base/status.hpp"
#include "framework/options/option.hpp"

namespace altiplano {

enum class RunFolder : uint8_t {
  kMade,      ///< folders that are missing are made
  kTaken,     ///< the same, and who may still hold it was given up (altiplano supervise)
  kUntouched  ///< nothing stays that was not there
};

/// Tries run.dir, its logs folder, checkpoint.dir and the files that `ranks` ranks append to, and whether another job
/// has the folder. kInvalidArgument names the key, what cannot be written and why.
Status check_can_write(const Options& options, int ranks, RunFolder use);

}  // namespace altiplano
