#include "framework/launch/stop_signal.hpp"

#include <signal.h>

#include <initializer_list>

namespace altiplano {

namespace {
volatile sig_atomic_t g_signal = 0;
void note_signal(int number) {
  if (g_signal == 0) g_signal = number;
}
}  // namespace

void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaction(number, &action, nullptr);
}

int stop_signal() {
  return g_signal;
}

}  // namespace altiplano
