#pragma once
// A text that the launcher shares with its ranks, in a memory file without a name: nothing is left behind by a kill.
// Ranks read it at /proc/<launcher>/fd/<n> while the launcher has it.
#include <string>

#include "framework/base/status.hpp"

namespace altiplano {

class MemoryFile {
 public:
  /// `name`: for people who look at open files.
  static Result<MemoryFile> create(const std::string& name, const std::string& content);
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile();
  std::string address() const;  ///< a path

 private:
  explicit MemoryFile(int file) : file_(file) {}
  int file_ = -1;
};

}  // namespace altiplano
