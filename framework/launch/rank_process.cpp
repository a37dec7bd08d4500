#include "framework/launch/rank_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/launch/stop_signal.hpp"

namespace altiplano {
namespace {

constexpr int kCannotExecute = 127;
constexpr std::string_view kErrorWord = "error: ";

/// How much was written: a full disk or a closed terminal must not stop the job.
size_t write_all(int file, const char* data, size_t bytes) {
  size_t written = 0;
  while (written < bytes) {
    const ssize_t n = write(file, data + written, bytes - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  return written;
}

void write_all(int file, const std::string& text) {
  write_all(file, text.data(), text.size());
}

/// All of it or nothing.
bool write_whole(int file, const std::string& text) {
  struct stat before {};
  if (fstat(file, &before) != 0) return false;
  if (write_all(file, text.data(), text.size()) == text.size()) return true;
  const int cut = ftruncate(file, before.st_size);
  (void)cut;  // then a piece of the line stays
  return false;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// The child's side of fork: async-signal-safe calls only.
[[noreturn]] void become_rank(char* const* command, char* const* environment, const cpu_set_t* cpus, pid_t parent,
                              int output, int errors, const sigset_t& blocked) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotExecute);
  setpgid(0, 0);
  for (int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE}) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  if (cpus != nullptr) sched_setaffinity(0, sizeof(*cpus), cpus);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execvpe(command[0], command, environment);
  const char* why = std::strerror(errno);
  write_all(STDERR_FILENO, "error: cannot execute ", 22);
  write_all(STDERR_FILENO, command[0], std::strlen(command[0]));
  write_all(STDERR_FILENO, ": ", 2);
  write_all(STDERR_FILENO, why, std::strlen(why));
  write_all(STDERR_FILENO, "\n", 1);
  _exit(kCannotExecute);
}

Status system_failure(const std::string& what) {
  return runtime_failure("{}: {}", what, std::strerror(errno));
}

void close_if_open(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

}  // namespace

Result<RankProcess> RankProcess::start(int rank, const RankStart& start) {
  RankProcess process;
  process.rank_ = rank;
  process.log_file_ = start.log_file;
  process.log_ = open(start.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (process.log_ < 0) return system_failure(start.log_file);
  write_all(process.log_, start.log_header);
  int output[2], errors[2];
  if (pipe2(output, O_CLOEXEC) != 0) return system_failure("pipe");
  process.output_ = output[0];
  if (pipe2(errors, O_CLOEXEC) != 0) {
    close(output[1]);
    return system_failure("pipe");
  }
  process.errors_ = errors[0];
  const auto command = pointers(start.command), environment = pointers(start.environment);
  sigset_t blocked;
  sigemptyset(&blocked);
  if (start.stop_signals_blocked) blocked = stop_signals();
  const pid_t parent = getpid();
  process.process_ = fork();
  if (process.process_ == 0)
    become_rank(command.data(), environment.data(), start.cpus ? &*start.cpus : nullptr, parent, output[1], errors[1],
                blocked);
  close(output[1]);
  close(errors[1]);
  if (process.process_ < 0) return system_failure("fork");
  setpgid(process.process_, process.process_);  // here too: a signal may come before the child got that far
  return process;
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : rank_(other.rank_),
      process_(other.process_),
      output_(other.output_),
      errors_(other.errors_),
      log_(other.log_),
      error_line_(std::move(other.error_line_)),
      last_error_(std::move(other.last_error_)),
      held_errors_(std::move(other.held_errors_)),
      in_error_(other.in_error_),
      log_file_(std::move(other.log_file_)),
      log_trouble_(std::move(other.log_trouble_)),
      log_bytes_lost_(other.log_bytes_lost_),
      console_error_(other.console_error_),
      stopped_(other.stopped_),
      ended_(other.ended_),
      exit_code_(other.exit_code_),
      ending_signal_(other.ending_signal_) {
  other.process_ = other.output_ = other.errors_ = other.log_ = -1;
}

RankProcess::~RankProcess() {
  if (process_ > 0 && !ended_) {
    kill(-process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  for (int* file : {&output_, &errors_, &log_}) close_if_open(*file);
}

void RankProcess::write_log(const char* data, size_t bytes, int errors_console) {
  if (log_bytes_lost_ > 0) {
    const auto lost = static_cast<int64_t>(log_bytes_lost_);
    const std::string gap =
        fmt::format("\n== {} {} missing here: {}\n", counted(lost, "byte"), plural(lost, "is", "are"), log_trouble_);
    if (write_whole(log_, gap)) {
      log_bytes_lost_ = 0;
      write_all(errors_console, fmt::format("note: {} is written again; {} of it {} lost\n", log_file_,
                                            counted(lost, "byte"), plural(lost, "is", "are")));
    }
  }
  const size_t written = log_bytes_lost_ > 0 ? 0 : write_all(log_, data, bytes);
  if (written == bytes) return;
  if (log_bytes_lost_ == 0) {
    log_trouble_ = std::strerror(errno);
    write_all(errors_console,
              fmt::format("note: {} cannot be written: {}; the run goes on\n", log_file_, log_trouble_));
  }
  log_bytes_lost_ += bytes - written;
}

void RankProcess::forward_output(int console, int errors_console) {
  char chunk[16384];
  const ssize_t n = read(output_, chunk, sizeof(chunk));
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) return close_if_open(output_);
  write_log(chunk, static_cast<size_t>(n), errors_console);
  if (rank_ == 0 && write_all(console, chunk, static_cast<size_t>(n)) < static_cast<size_t>(n) && console_error_ == 0)
    console_error_ = errno;
}

/// An error is held back, with the lines that belong to it: the launcher says at the end whose was the first.
void RankProcess::take_error_line(int console) {
  const std::string line = std::exchange(error_line_, {});
  if (line.starts_with(kErrorWord)) {
    last_error_ = line.substr(kErrorWord.size());
    held_errors_.push_back(last_error_);
    in_error_ = true;
    return;
  }
  in_error_ = in_error_ && line.starts_with("  ");
  if (in_error_) {
    last_error_ += "\n" + line;
    held_errors_.back() = last_error_;
    return;
  }
  write_all(console, console_prefix() + line + "\n");
  if (const std::string text = trim(line); !text.empty()) last_error_ = text;
}

std::string RankProcess::console_prefix() const {
  return rank_ == 0 ? "" : fmt::format("rank {}: ", rank_);
}

void RankProcess::forward_errors(int console) {
  char chunk[16384];
  const ssize_t n = read(errors_, chunk, sizeof(chunk));
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) {
    if (!error_line_.empty()) take_error_line(console);
    return close_if_open(errors_);
  }
  write_log(chunk, static_cast<size_t>(n), console);
  for (ssize_t i = 0; i < n; ++i) {
    if (chunk[i] == '\n')
      take_error_line(console);
    else
      error_line_ += chunk[i];
  }
}

void RankProcess::take_note_of_stop() {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(process_), &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 || info.si_pid == 0)
    return;
  if (info.si_code == CLD_STOPPED)
    stopped_ = Stopped{info.si_status, std::chrono::steady_clock::now()};
  else
    stopped_.reset();
}

void RankProcess::reap() {
  siginfo_t info{};
  if (!ended_) take_note_of_stop();
  if (ended_ || waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return;
  kill(-process_, SIGKILL);  // while the zombie keeps the number from being used again
  int how = 0;
  waitpid(process_, &how, 0);
  ended_ = true;
  ending_signal_ = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
  exit_code_ = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
}

void RankProcess::signal(int number) const {
  if (!ended_) kill(-process_, number);
}

}  // namespace altiplano
