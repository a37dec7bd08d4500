#pragma once
// Programs that this process starts: those of a workload manager (squeue, sbatch, srun). A child is a process group of
// its own with an empty stdin and no signal blocked, and dies with the thread that started it.
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

struct ChildStart {
  std::vector<std::string> command;           ///< the first word is searched in PATH
  std::vector<std::string> environment = {};  ///< "NAME=value", besides or instead of what this process has
  int output = -1, errors = -1;               ///< descriptors for its stdout and stderr; -1: this process's own
};

class ChildProcess {
 public:
  /// kInvalidArgument when there is no such program, with its name.
  static Result<ChildProcess> start(const ChildStart& start);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  ///< kills what still runs, and waits for it

  /// 128 + n for signal n; nothing while it runs. Never waits.
  std::optional<int> exit_code();
  void signal(int number) const;        ///< to the child alone
  void signal_group(int number) const;  ///< to all that it started, too

 private:
  explicit ChildProcess(pid_t process) : process_(process) {}
  pid_t process_ = -1;
  std::optional<int> exit_code_;
};

struct ProgramOutcome {
  int exit_code = 0;
  std::string output, errors;
};
/// Runs a program to its end. kPeerStuck when it takes longer than `limit`, and kills it.
Result<ProgramOutcome> run_program(const std::vector<std::string>& command, std::chrono::milliseconds limit,
                                   const std::vector<std::string>& environment = {});

}  // namespace altiplano
