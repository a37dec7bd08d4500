#pragma once
// The folders a run writes into, tried before anything else is done.
#include "framework/base/status.hpp"
#include "framework/options/option.hpp"

namespace altiplano {

/// Makes run.dir, its logs folder and checkpoint.dir where they are missing and writes a file into each.
/// kInvalidArgument names the key, the folder and why it cannot be.
Status check_can_write(const Options& options);

}  // namespace altiplano
