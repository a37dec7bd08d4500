#pragma once
// Signals only set a flag; the ranks agree on it at a step's boundary, save once and stop (design section 9).

namespace altiplano {

/// SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 from now on set the flag.
void catch_stop_signals();
/// 0, or the signal that came first.
int stop_signal();

}  // namespace altiplano
