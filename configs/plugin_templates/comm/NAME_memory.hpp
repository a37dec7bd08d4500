#pragma once
// Memory that processes of one host share without a name in any file system: nothing is left behind, whoever dies.
#include <cstddef>
#include <memory>
#include <string>

#include "framework/base/status.hpp"

namespace @name@_plugin {

struct SharedMemory {
  std::shared_ptr<void> memory;
  std::string path;                   ///< where other processes open it while `descriptor` lives
  std::shared_ptr<const int> descriptor;  ///< closed with its last owner
};

/// New, zeroed memory of this process.
altiplano::Result<SharedMemory> make_memory(size_t bytes);
/// Maps the memory that another process made.
altiplano::Result<std::shared_ptr<void>> attach_memory(const std::string& path, size_t bytes);

}  // namespace @name@_plugin
