#include "framework/storage/removed_on_signal.hpp"

#include <signal.h>
#include <unistd.h>

#include <climits>

#include "framework/base/status.hpp"

namespace altiplano {
namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

char g_removed_path[PATH_MAX];  // empty: nothing to remove

/// Async-signal-safe. The signal comes again with its own meaning when this returns (SA_RESETHAND).
void remove_and_end(int number) {
  if (g_removed_path[0] != 0) ::unlink(g_removed_path);
  ::raise(number);
}

bool has_handler(int number, void (*handler)(int)) {
  struct sigaction now = {};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == handler;
}

}  // namespace

EndingSignalsHeld::EndingSignalsHeld() {
  sigset_t ending;
  sigemptyset(&ending);
  for (int number : kEndingSignals) sigaddset(&ending, number);
  ::pthread_sigmask(SIG_BLOCK, &ending, &before_);
}

EndingSignalsHeld::~EndingSignalsHeld() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

RemovedOnSignal::RemovedOnSignal(const std::string& path) {
  ALTIPLANO_ASSERT(g_removed_path[0] == 0, "{} is removed on a signal already", g_removed_path);
  if (path.size() >= sizeof(g_removed_path)) return;
  path.copy(g_removed_path, path.size());
  struct sigaction action = {};
  action.sa_handler = remove_and_end;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (int number : kEndingSignals)
    if (has_handler(number, SIG_DFL)) ::sigaction(number, &action, nullptr);
}

RemovedOnSignal::~RemovedOnSignal() {
  for (int number : kEndingSignals)
    if (has_handler(number, remove_and_end)) ::signal(number, SIG_DFL);
  for (char& c : g_removed_path) c = 0;
}

}  // namespace altiplano
