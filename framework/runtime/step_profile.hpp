#pragma once
// Where the time of a rank's steps goes: seconds of every instruction, summed over steps and by what the instructions
// do. An instruction's time holds its waiting for what must be complete before it (a collective, a receive).
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/program/program.hpp"

namespace altiplano {

/// What kind of work an instruction is. kExchanged: collectives and receives, whose time is that of their transfer and
/// of the wait for other ranks; which is which no rank knows alone. kBetween: outside of instructions.
enum class ProfileGroup : uint8_t { kComputed, kMoved, kExchanged, kBetween };
/// "computed", "moved within the rank", ...
const char* to_string(ProfileGroup group);

/// All instructions that do the same in the same kind of block, per step.
struct ProfileRow {
  std::string what;    ///< op kind, or "all_reduce", "send", "copy", ...
  std::string during;  ///< "forward", "backward", "update", ...
  double calls = 0, seconds = 0, flops = 0, bytes = 0;
  ProfileGroup group = ProfileGroup::kComputed;
};

/// Seconds of each group, in the order of ProfileGroup.
std::array<double, 4> seconds_by_group(const std::vector<ProfileRow>& rows);
/// `rows`, most seconds first, with those below `least_share` of all time in one row at the end, "12 more". One such
/// row alone stays as it is.
std::vector<ProfileRow> with_small_rows_folded(std::vector<ProfileRow> rows, double least_share);

/// What one instruction took over all steps.
struct InstructionTime {
  const Instruction* instruction = nullptr;
  double calls = 0, seconds = 0;  ///< per step; seconds of all calls together
};

class StepProfile {
 public:
  /// `program` must outlive it.
  explicit StepProfile(const Program& program);
  void add(BlockId block, size_t instruction, double seconds);
  void end_step(double seconds) { steps_.push_back(seconds); }

  const std::vector<double>& steps() const { return steps_; }  ///< seconds of each
  /// Per step, most seconds first. What is not within instructions is "between instructions".
  std::vector<ProfileRow> rows() const;
  /// Those that ran, in the order of the program.
  std::vector<InstructionTime> instructions() const;

 private:
  struct Count {
    int64_t calls = 0;
    double seconds = 0;
  };
  const Program& program_;
  std::vector<std::vector<Count>> counts_;  ///< [block][instruction]
  std::vector<double> steps_;
};

/// Adds the time of its life to a profile; nullptr: does nothing.
class InstructionClock {
 public:
  InstructionClock(StepProfile* profile, BlockId block, size_t instruction)
      : profile_(profile), block_(block), instruction_(instruction) {
    if (profile_ != nullptr) begin_ = std::chrono::steady_clock::now();
  }
  InstructionClock(const InstructionClock&) = delete;
  InstructionClock& operator=(const InstructionClock&) = delete;
  ~InstructionClock() {
    if (profile_ == nullptr) return;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
    profile_->add(block_, instruction_, seconds.count());
  }

 private:
  StepProfile* profile_;
  BlockId block_;
  size_t instruction_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace altiplano
