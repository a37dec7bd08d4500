#pragma once
// Private to launch/: one rank's process, its output and its end.
#include <sched.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

struct RankStart {
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< "NAME=value", all of it
  std::string log_file;
  std::string log_header;  ///< one line, written before anything else
  std::optional<cpu_set_t> cpus;
  bool stop_signals_blocked = false;  ///< until it catches them
};

class RankProcess {
 public:
  /// Starts it: own process group, dies with its parent, stdin empty, no signal blocked but those asked for.
  static Result<RankProcess> start(int rank, const RankStart& start);
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;
  ~RankProcess();  ///< kills what still runs

  int rank() const { return rank_; }
  int output() const { return output_; }  ///< to poll; -1 once at its end
  int errors() const { return errors_; }
  /// Copies what there is to the log and the console. A log that cannot be written (disk full) is said once on
  /// `errors_console`, and again when it can be.
  void forward_output(int console, int errors_console);
  void forward_errors(int console);

  int console_error() const { return console_error_; }  ///< errno of the first output the console did not take; 0: none

  /// Takes note of its end and of stops; what it left running in its group is killed.
  void reap();
  bool has_ended() const { return ended_; }
  /// The signal that stopped it and has not been undone by SIGCONT, and when that was seen.
  struct Stopped {
    int signal = 0;
    std::chrono::steady_clock::time_point since;
  };
  const std::optional<Stopped>& stopped() const { return stopped_; }
  bool has_closed() const { return output_ < 0 && errors_ < 0; }
  void signal(int number) const;
  int exit_code() const { return exit_code_; }  ///< 128 + n for signal n
  int ending_signal() const { return ending_signal_; }
  /// Its last error on stderr without "error: ", with the indented lines behind it; else its last line that is not
  /// empty.
  const std::string& last_error() const { return last_error_; }
  /// Errors, which forward_errors() has put into the log only.
  const std::vector<std::string>& held_errors() const { return held_errors_; }
  std::string console_prefix() const;  ///< "rank 3: "; nothing for rank 0

 private:
  RankProcess() = default;
  void take_error_line(int console);
  void write_log(const char* data, size_t bytes, int errors_console);
  void take_note_of_stop();
  int rank_ = 0;
  pid_t process_ = -1;
  int output_ = -1, errors_ = -1, log_ = -1;
  std::string error_line_;  // begun, not ended
  std::string last_error_;
  std::vector<std::string> held_errors_;
  bool in_error_ = false;  // the last line was of an error
  std::string log_file_, log_trouble_;
  size_t log_bytes_lost_ = 0;
  int console_error_ = 0;
  std::optional<Stopped> stopped_;
  bool ended_ = false;
  int exit_code_ = 0, ending_signal_ = 0;
};

}  // namespace altiplano
