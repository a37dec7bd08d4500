#pragma once
// <run.dir>/end.json: what all ranks of a start agreed on when it ended well. A launcher's exit code is no such thing:
// srun returns 0 although a task died with its node.
#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/status.hpp"

namespace altiplano {

struct EndRecord {
  std::string start;     ///< whose end it is: the supervisor's name for it ("14.0.2"), else the job's id
  bool is_done = false;  ///< all steps are; else it saved and stopped early
  int64_t step = 0;
  int ranks = 0;
};

Status write_end_record(const std::string& run_directory, const EndRecord& record);
/// Nothing when there is none that can be read.
std::optional<EndRecord> read_end_record(const std::string& run_directory);

}  // namespace altiplano
