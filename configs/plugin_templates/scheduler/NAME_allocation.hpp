#pragma once
// From the environment to the allocation, as a pure function.
#include "framework/api/scheduler.hpp"

namespace @name@_plugin {

using Environment = std::map<std::string, std::string>;

/// @NAME@_JOB_ID is set to something that is safe in a file name.
bool is_present(const Environment& environment);
/// @NAME@_HOSTS: names with commas between; the ranks are dealt out evenly. @NAME@_CPUS_PER_RANK: a number, else 1.
altiplano::Result<altiplano::Allocation> read_allocation(const Environment& environment, int ranks);

}  // namespace @name@_plugin
