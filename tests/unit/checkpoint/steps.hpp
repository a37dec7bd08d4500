#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "framework/checkpoint/layout.hpp"

namespace altiplano::test {

/// Steps of the checkpoints in a folder, the newest first.
inline std::vector<int64_t> steps_in(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const StepFolder& step : list_step_folders(folder)) steps.push_back(step.step);
  return steps;
}

}  // namespace altiplano::test
