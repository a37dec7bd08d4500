#pragma once
// Recomputation of a chain by Rotor's dynamic program (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal
// checkpointing for heterogeneous chains", 2019): which forward results to keep, and which to compute again before they
// are needed, for the least time within a memory. Stages may differ in time and memory. Exact among schedules that
// keep what they have decided to keep until its backward has used it. A pure function over numbers; memory is counted
// in slots of any size.
#include <cstdint>
#include <optional>
#include <vector>

namespace altiplano {

struct ChainStage {
  double forward = 0, backward = 0;  ///< seconds
  int64_t output = 0;                ///< slots of its result alone, and of that result's gradient
  int64_t saved = 0;                 ///< slots of all that its backward reads, its result included; at least `output`
};

struct RecomputeChain {
  int64_t input = 0;  ///< slots of what the first stage reads and of its gradient; kept to the end
  std::vector<ChainStage> stages;
};

enum class ChainOpKind : uint8_t {
  kForward,         ///< computes a result and lets go of what it read, unless that is kept
  kForwardKeeping,  ///< the same, and keeps what it read until the backward of this stage
  kForwardSaving,   ///< computes a result and all that the backward reads; what it read is kept
  kBackward,        ///< needs what the stage read and what kForwardSaving left; lets go of both
};
struct ChainOp {
  ChainOpKind kind = ChainOpKind::kForward;
  int stage = 0;
  auto operator<=>(const ChainOp&) const = default;
};

struct ChainSchedule {
  double seconds = 0;
  std::vector<ChainOp> ops;
};

/// The fastest way through forward and backward of all stages within `slots`; nothing when there is none.
/// O(slots x stages^3) time, O(slots x stages^2) memory.
std::optional<ChainSchedule> cheapest_recomputation(const RecomputeChain& chain, int64_t slots);

/// Seconds and most slots of a schedule; nothing when it uses what is not there, or does not end with every backward
/// done.
struct ChainReplay {
  double seconds = 0;
  int64_t peak = 0;
};
std::optional<ChainReplay> replay(const RecomputeChain& chain, const std::vector<ChainOp>& ops);

}  // namespace altiplano
