#include "framework/conformance/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "framework/base/text.hpp"

namespace altiplano::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kEnd = '\x04';  ///< closes an answer: without it the child was cut off

/// Two pipes from the child: its answer, and what it prints.
struct Pipes {
  std::array<int, 2> answer{-1, -1}, output{-1, -1};
  bool open() { return pipe2(answer.data(), O_CLOEXEC) == 0 && pipe2(output.data(), O_CLOEXEC) == 0; }
  void close_end(int end) {
    for (auto* ends : {&answer, &output}) {
      if ((*ends)[static_cast<size_t>(end)] >= 0) close((*ends)[static_cast<size_t>(end)]);
      (*ends)[static_cast<size_t>(end)] = -1;
    }
  }
};

void write_all(int file, const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = write(file, text.data() + sent, text.size() - sent);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

[[noreturn]] void be_child(const std::function<std::string()>& work, Pipes& pipes) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGPIPE}) signal(number, SIG_DFL);
  dup2(pipes.output[1], STDOUT_FILENO);
  dup2(pipes.output[1], STDERR_FILENO);
  pipes.close_end(0);
  const std::string answer = work();
  std::fflush(nullptr);
  write_all(pipes.answer[1], answer + kEnd);
  _exit(0);
}

/// Takes what is there; false at the end of the pipe.
bool take(int file, std::string& text) {
  char part[4096];
  const ssize_t n = read(file, part, sizeof(part));
  if (n > 0) text.append(part, static_cast<size_t>(n));
  return n > 0;
}

/// Collects both pipes until the child has closed them, ended, or the time is up (false).
bool listen(pid_t child, Pipes& pipes, Clock::time_point end, std::string& answer, std::string& output) {
  std::array<pollfd, 2> polls = {pollfd{pipes.answer[0], POLLIN, 0}, pollfd{pipes.output[0], POLLIN, 0}};
  bool has_ended = false;
  for (;;) {
    constexpr int kTick = 20;  // milliseconds
    const int ready = poll(polls.data(), polls.size(), has_ended ? 0 : kTick);
    if (ready > 0 && polls[0].revents != 0 && !take(polls[0].fd, answer)) polls[0].fd = -1;
    if (ready > 0 && polls[1].revents != 0 && !take(polls[1].fd, output)) polls[1].fd = -1;
    if (polls[0].fd < 0 && polls[1].fd < 0) return true;
    if (has_ended && ready <= 0) return true;  // a grandchild may hold the pipes open
    siginfo_t info{};
    has_ended =
        waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
    if (!has_ended && Clock::now() >= end) return false;
  }
}

std::string last_line(const std::string& output) {
  std::string last;
  for (const std::string& line : split(output, '\n'))
    if (!trim(line).empty()) last = trim(line);
  return last.empty() ? "" : fmt::format("; its last words: {}", last.substr(0, 300));
}

}  // namespace

Result<std::string> run_in_child(const std::function<std::string()>& work, std::chrono::milliseconds timeout) {
  Pipes pipes;
  if (!pipes.open()) return runtime_failure("pipe: {}", std::strerror(errno));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return runtime_failure("fork: {}", std::strerror(errno));
  if (child == 0) be_child(work, pipes);
  setpgid(child, child);
  pipes.close_end(1);
  std::string answer, output;
  const bool in_time = listen(child, pipes, Clock::now() + timeout, answer, output);
  if (in_time) {  // it may have closed its pipes and still be alive
    siginfo_t info{};
    for (int i = 0; i < 100 && waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                    info.si_pid == 0;
         ++i)
      usleep(10'000);
  }
  kill(-child, SIGKILL);
  int how = 0;
  waitpid(child, &how, 0);
  pipes.close_end(0);
  if (!in_time)
    return runtime_failure("did not end within {:.0f} s{}", std::chrono::duration<double>(timeout).count(),
                           last_line(output));
  if (!answer.empty() && answer.back() == kEnd) return answer.substr(0, answer.size() - 1);
  if (WIFSIGNALED(how))
    return runtime_failure("crashed: signal {} ({}){}", WTERMSIG(how), strsignal(WTERMSIG(how)), last_line(output));
  return runtime_failure("ended the process with exit code {}{}", WEXITSTATUS(how), last_line(output));
}

}  // namespace altiplano::conformance
