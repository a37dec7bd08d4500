#pragma once
// A fresh folder that is removed with everything in it at the end of the test.
#include <filesystem>
#include <string>

namespace altiplano::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);
/// Flips one bit of the byte at `offset`.
void flip_bit(const std::string& path, size_t offset);
/// Runs a shell command; its output (stdout and stderr) and exit code.
struct CommandResult {
  int exit_code = -1;
  std::string output;
};
CommandResult run_command(const std::string& command);

}  // namespace altiplano::test
