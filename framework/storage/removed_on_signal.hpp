#pragma once
// A file that goes when the process is asked to end: what is being written and would be of use to nobody.
#include <signal.h>

#include <string>

namespace altiplano {

/// Holds back the signals that end a process, for as long as it lives: while what they would have to remove is made.
class EndingSignalsHeld {
 public:
  EndingSignalsHeld();
  ~EndingSignalsHeld();
  EndingSignalsHeld(const EndingSignalsHeld&) = delete;
  EndingSignalsHeld& operator=(const EndingSignalsHeld&) = delete;

 private:
  sigset_t before_;
};

/// While it lives, SIGINT, SIGTERM and SIGHUP remove the file and then end the process as ever. Signals that the
/// process handles or ignores keep their meaning. One at a time in a process.
class RemovedOnSignal {
 public:
  explicit RemovedOnSignal(const std::string& path);
  ~RemovedOnSignal();
  RemovedOnSignal(const RemovedOnSignal&) = delete;
  RemovedOnSignal& operator=(const RemovedOnSignal&) = delete;
};

}  // namespace altiplano
