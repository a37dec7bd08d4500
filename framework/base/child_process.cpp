#include "framework/base/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

/// Both ends close on exec.
struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) == 0) read_end = ends[0], write_end = ends[1];
  }
  ~Pipe() { close_read(), close_write(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_read() { close_end(read_end); }
  void close_write() { close_end(write_end); }

 private:
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

std::string name_of(const std::string& variable) {
  return variable.substr(0, variable.find('=') + 1);
}

std::vector<std::string> environment_with(const std::vector<std::string>& own) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (std::ranges::none_of(own, [&](const std::string& other) { return name_of(other) == name_of(text); }))
      all.push_back(text);
  }
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// After fork(): only what is safe between it and exec. What goes wrong is written to `trouble`.
[[noreturn]] void become(char* const* command, char* const* environment, const ChildStart& start, int trouble) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (const int nothing = open("/dev/null", O_RDONLY); nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (start.output >= 0) dup2(start.output, STDOUT_FILENO);
  if (start.errors >= 0) dup2(start.errors, STDERR_FILENO);
  execvpe(command[0], command, environment);
  const int error = errno;
  const ssize_t written = write(trouble, &error, sizeof(error));
  (void)written;
  _exit(127);
}

int exit_code_of_wait(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Appends what has come; false at the end.
bool read_some(int file, std::string& text) {
  std::array<char, 4096> buffer{};
  const ssize_t bytes = read(file, buffer.data(), buffer.size());
  if (bytes > 0) text.append(buffer.data(), static_cast<size_t>(bytes));
  return bytes > 0 || (bytes < 0 && errno == EINTR);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const ChildStart& start) {
  ALTIPLANO_ASSERT(!start.command.empty(), "no command");
  std::vector<std::string> command = start.command, variables = environment_with(start.environment);
  const std::vector<char*> words = pointers(command), environment = pointers(variables);
  Pipe trouble;
  const pid_t process = fork();
  if (process < 0) return runtime_failure("{}: cannot be started: {}", start.command[0], std::strerror(errno));
  if (process == 0) become(words.data(), environment.data(), start, trouble.write_end);
  ChildProcess child(process);
  trouble.close_write();
  int error = 0;
  if (read(trouble.read_end, &error, sizeof(error)) == sizeof(error))
    return invalid_argument("{}: cannot be started: {}", start.command[0], std::strerror(error));
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)), exit_code_(other.exit_code_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(exit_code_, other.exit_code_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (process_ < 0 || exit_code_) return;
  signal_group(SIGKILL);
  signal(SIGKILL);
  waitpid(process_, nullptr, 0);
}

std::optional<int> ChildProcess::exit_code() {
  if (exit_code_ || process_ < 0) return exit_code_;
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) == process_) exit_code_ = exit_code_of_wait(status);
  return exit_code_;
}

void ChildProcess::signal(int number) const {
  if (process_ > 0 && !exit_code_) kill(process_, number);
}

void ChildProcess::signal_group(int number) const {
  if (process_ > 0 && !exit_code_) kill(-process_, number);
}

Result<ProgramOutcome> run_program(const std::vector<std::string>& command, std::chrono::milliseconds limit,
                                   const std::vector<std::string>& environment) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until = Clock::now() + limit;
  const auto left = [&] { return std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count(); };
  Pipe output, errors;
  ALTIPLANO_ASSIGN(
      ChildProcess child,
      ChildProcess::start(
          {.command = command, .environment = environment, .output = output.write_end, .errors = errors.write_end}));
  output.close_write();
  errors.close_write();
  ProgramOutcome outcome;
  const Status late(StatusCode::kPeerStuck, fmt::format("{} did not answer within {:.1f} s", command[0],
                                                        std::chrono::duration<double>(limit).count()));
  while (output.read_end >= 0 || errors.read_end >= 0) {
    std::array<pollfd, 2> polls = {pollfd{output.read_end, POLLIN, 0}, pollfd{errors.read_end, POLLIN, 0}};
    if (left() <= 0) return late;
    poll(polls.data(), polls.size(), static_cast<int>(std::max<int64_t>(1, left())));
    if (polls[0].revents != 0 && !read_some(output.read_end, outcome.output)) output.close_read();
    if (polls[1].revents != 0 && !read_some(errors.read_end, outcome.errors)) errors.close_read();
  }
  for (; !child.exit_code(); poll(nullptr, 0, 1))
    if (left() <= 0) return late;
  outcome.exit_code = *child.exit_code();
  return outcome;
}

}  // namespace altiplano
