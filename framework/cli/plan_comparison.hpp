#pragma once
// Plans of one job side by side.
#include <string>
#include <vector>

#include "framework/runtime/job.hpp"

namespace altiplano {

/// One column: a name for its head, and the job with the plan. `refusal` instead of a job where there is no plan.
struct PlanColumn {
  std::string name;
  std::optional<Job> job;
  std::string refusal;
};

/// A table of what the plans are and what they take, by estimate and simulation; differences are those of the first
/// column. What has no plan says why below the table.
Result<std::string> compare_plans(const std::vector<PlanColumn>& columns);

}  // namespace altiplano
