#pragma once
// RankBoard: memory that the launcher shares with its ranks, where each says what it is doing. It outlives a rank, so
// that after a death the launcher still knows the step; and a rank that ends with exit code 0 without having said that
// it is done has failed.
//
// A memory file without a name: nothing is left behind by a kill. Ranks open it as /proc/<launcher>/fd/<n>, the value
// of ALTIPLANO_BOARD. One word per rank, written by it alone; thread-safe.
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/ids.hpp"
#include "framework/base/status.hpp"

namespace altiplano {

enum class RankPhase : uint8_t { kAbsent, kStarting, kTraining, kValidating, kSaving, kDone };

struct RankActivity {
  RankPhase phase = RankPhase::kAbsent;
  int64_t step = 0;
};

/// "in step 12", "while starting", "while saving step 12"; empty for kAbsent.
std::string to_string(const RankActivity& activity);

/// The launcher's side.
class RankBoard {
 public:
  static Result<RankBoard> create(int ranks);
  RankBoard(RankBoard&& other) noexcept;
  RankBoard& operator=(RankBoard&&) = delete;
  ~RankBoard();
  std::string address() const;
  RankActivity of(int rank) const;
  /// The signal by which the rank was asked to stop; 0: it was not.
  int stop_signal_of(int rank) const;

 private:
  RankBoard(int file, std::shared_ptr<void> memory) : file_(file), memory_(std::move(memory)) {}
  int file_ = -1;
  std::shared_ptr<void> memory_;
};

/// How a rank gets on within its phase.
struct RankMotion {
  uint64_t moves = 0;  ///< what it has done, counted
  bool waits = false;  ///< the next thing is another rank's
};

/// A rank's side. One that was not opened takes note of nothing.
class RankReport {
 public:
  RankReport() = default;
  /// Empty address: no launcher, the memory is the rank's own. One that cannot be opened: kRuntimeFailure, the launcher
  /// is gone.
  static Result<RankReport> open(const std::string& address, RankId rank, int ranks);
  void set(RankPhase phase, int64_t step) const;
  /// The rank goes on, to something for which it waits for others or not.
  void move(bool waits) const;
  // What was said, for any thread of the rank.
  RankActivity activity() const;
  RankMotion motion() const;
  /// Whether a launcher reads it.
  bool is_read() const { return is_shared_; }
  /// It was asked to stop by this signal. Any thread.
  void set_stop_signal(int number) const;

 private:
  std::shared_ptr<void> memory_;
  bool is_shared_ = false;
  int rank_ = 0;  ///< its place in the memory
};

}  // namespace altiplano
