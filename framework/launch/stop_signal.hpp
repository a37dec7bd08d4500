#pragma once
// Signals only set a flag; the ranks agree on it at a step's boundary, save once and stop (design section 9).
//
// The stop signals are SIGTERM, SIGINT, SIGUSR1, SIGUSR2, and SIGHUP unless it is ignored (nohup).
#include <csignal>
#include <string>

namespace altiplano {

sigset_t stop_signals();

/// The stop signals from now on set the flag, and `heard` is called for the first of them (also when that came before
/// this call); it runs in the signal's handler and may only do what is safe there. Unblocks them: a launched rank
/// starts with them blocked, so that none that comes early kills it.
void catch_stop_signals(void (*heard)(int number) = nullptr);
/// 0, or the signal that came first.
int stop_signal();
/// "SIGTERM"
std::string signal_name(int number);

/// While there is nothing to save yet: the stop signals print `message` to stderr and end the process with exit code 75
/// (kStoppedEarly).
void exit_on_stop_signals(const std::string& message);
/// From now on they do nothing: the end is near and its exit code known.
void ignore_stop_signals();

}  // namespace altiplano
