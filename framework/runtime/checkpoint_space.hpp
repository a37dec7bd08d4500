#pragma once
// Will the checkpoints of a run fit where they are to go? Asked before the first step, so that a full disk is news at
// the start and not at the end.
#include <optional>
#include <string>

#include "framework/checkpoint/retention.hpp"
#include "framework/runtime/job.hpp"

namespace altiplano {

/// Of one checkpoint, at most: parameters, master weights, optimizer state, and what the files add to them.
Bytes checkpoint_bytes(const Job& job);
/// On the file system that `path`, or the nearest folder above it that exists, lies on. Nothing where the system does
/// not say, as for /proc.
std::optional<Bytes> free_bytes_at(const std::string& path);
/// checkpoint.keep_last and checkpoint.keep_every.
KeepRule keep_rule(const Options& options);

struct SpaceForecast {
  std::string directory;
  Bytes each;
  std::optional<Bytes> free;  ///< nothing: not known, and nothing is said
  int64_t most = 1;           ///< that lie there at one time, the one being written included
  int64_t there = 0;          ///< that lie there already
};
SpaceForecast forecast_space(const Job& job);

/// Refused: not even one more fits. A notice: one fits, but not all that will be kept. Nothing: all fit.
Result<std::optional<std::string>> check_space(const SpaceForecast& forecast);

}  // namespace altiplano
