#include "framework/launch/stop_signal.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "framework/base/status.hpp"

namespace altiplano {

namespace {

constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP};

std::atomic<int> g_signal = 0;
std::atomic<void (*)(int)> g_heard = nullptr;
std::atomic<bool> g_is_told = false;
char g_message[256];

void tell() {
  const auto heard = g_heard.load();
  if (heard != nullptr && g_signal != 0 && !g_is_told.exchange(true)) heard(g_signal);
}

/// The one thread that takes the stop signals; all others have them blocked.
[[noreturn]] void take_signals(sigset_t set) {
  for (int number = 0;;) {
    if (sigwait(&set, &number) != 0) continue;
    int none = 0;
    g_signal.compare_exchange_strong(none, number);
    tell();
  }
}

void print_and_exit(int /*number*/) {
  const ssize_t written = write(STDERR_FILENO, g_message, std::strlen(g_message));
  (void)written;  // the exit code says it too
  _exit(exit_code_of(StatusCode::kStoppedEarly));
}

bool is_ignored(int number) {
  struct sigaction now = {};
  return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

void handle(void (*handler)(int)) {
  const sigset_t set = stop_signals();
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (int number : kStopSignals)
    if (sigismember(&set, number) == 1) sigaction(number, &action, nullptr);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kStopSignals)
    if (number != SIGHUP || !is_ignored(SIGHUP)) sigaddset(&set, number);
  return set;
}

void catch_stop_signals(void (*heard)(int number)) {
  static std::once_flag once;
  g_heard = heard;
  std::call_once(once, [] {
    const sigset_t set = stop_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    for (int number : kStopSignals)  // one that is ignored would not be waited for
      if (sigismember(&set, number) == 1) signal(number, SIG_DFL);
    std::thread(take_signals, set).detach();
  });
  tell();
}

int stop_signal() {
  return g_signal;
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? std::to_string(number) : std::string("SIG") + name;
}

void exit_on_stop_signals(const std::string& message) {
  std::strncpy(g_message, message.c_str(), sizeof(g_message) - 1);
  handle(print_and_exit);
}

void ignore_stop_signals() {
  for (int number : kStopSignals) signal(number, SIG_IGN);
}

}  // namespace altiplano
