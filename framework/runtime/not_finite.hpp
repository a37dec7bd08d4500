#pragma once
// Where a value that is not finite came from: the first kernel of all ranks that made one out of finite inputs, or the
// parameter that is not finite itself. Found by running a skipped step once more (Executor::find_not_finite), which
// gives the same values, since a step is a pure function of weights and samples.
#include <cstdint>
#include <string>

#include "framework/api/comm.hpp"
#include "framework/api/device.hpp"
#include "framework/program/program.hpp"

namespace altiplano {

struct NotFinite {
  enum class Kind : uint8_t { kNone, kComputed, kParameter };
  Kind kind = Kind::kNone;
  ActionKind action = ActionKind::kForward;
  int64_t rank = 0;
  int64_t microbatch = -1;                    ///< -1: of no microbatch (the update)
  int64_t first_sample = 0, num_samples = 0;  ///< of the microbatch, in global-batch coordinates
  std::string operation;                      ///< label of the instruction, or name of the parameter
  std::string host;

  /// "rank 2 (n3), microbatch 1 (samples 32 to 33 of the run), forward of block.0.ln1"; kNone: that it passed.
  std::string to_string() const;
};

/// Looks at what the kernels of one rank read and write.
class NotFiniteSearch {
 public:
  NotFiniteSearch(const Program& program, Device& device) : program_(program), device_(device) {}
  /// Before and after a kernel runs; memory by operand.
  Status before(const ComputeInstruction& what, std::span<const void* const> inputs);
  Status after(const ComputeInstruction& what, std::span<void* const> outputs, const Action& action,
               const std::string& label);
  const NotFinite& first() const { return first_; }

 private:
  Result<bool> is_finite(const Operand& operand, const void* memory);
  void found(NotFinite::Kind kind, const Action& action, const std::string& operation);

  const Program& program_;
  Device& device_;
  NotFinite first_;
  bool inputs_are_finite_ = true;
  std::string parameter_;  ///< an input that is one and not finite
  std::vector<char> host_;
};

/// Collective over `world`: of what all ranks found, the one of the lowest microbatch, then forward before backward,
/// then of the lowest rank. The same on all ranks.
Result<NotFinite> first_not_finite(Communicator& communicator, GroupId world, const NotFinite& mine);

}  // namespace altiplano
