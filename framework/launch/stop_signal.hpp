#pragma once
// Signals only set a flag, and interrupt nobody; the ranks agree on it at a step's boundary, save once and stop (design
// section 9).
//
// The stop signals are SIGTERM, SIGINT, SIGUSR1, SIGUSR2, and SIGHUP unless it is ignored (nohup).
#include <csignal>
#include <string>

namespace altiplano {

sigset_t stop_signals();

/// The stop signals from now on set the flag, and `heard` is called for the first of them (also when that came before
/// this call), by a thread of its own. To be called before there are other threads: all of them have the signals
/// blocked, and no handler ever interrupts them. Kernels of oneDNN use the stack's pointer for data, and what a handler
/// lays on the stack would then be written over the heap.
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
