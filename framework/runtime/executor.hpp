#pragma once
// Executor: runs a rank's Program on a Device and a Communicator. It allocates the arenas once, makes nothing new
// during a step, and decides nothing: order, buffers and peers are the Program's.
#include <functional>
#include <memory>
#include <vector>

#include "framework/api/comm.hpp"
#include "framework/api/device.hpp"
#include "framework/launch/rank_board.hpp"
#include "framework/program/program.hpp"
#include "framework/runtime/kernel_cache.hpp"
#include "framework/runtime/not_finite.hpp"
#include "framework/runtime/step_profile.hpp"

namespace altiplano {

/// Where the model's inputs come from: i32 values of a box of an input in global-batch coordinates (dim 0: sample of
/// the step).
class InputSource {
 public:
  virtual ~InputSource() = default;
  virtual Status fill(ValueId input, const Box& box, void* destination) = 0;
};

/// Sums over all ranks.
struct StepTotals {
  double loss_sum = 0, token_count = 0, norm_squared = 0, stop_requests = 0;
  double loss() const { return token_count > 0 ? loss_sum / token_count : 0; }
};

class Executor {
 public:
  /// All arguments must outlive it. Fails when the device has not the memory, or no kernel for an op.
  static Result<std::unique_ptr<Executor>> create(const Program& program, Device& device, Communicator& communicator,
                                                  KernelCache& kernels);
  ~Executor();

  /// Initial weights: a pure function of (seed, parameter name, global index), the same bits for every layout. States
  /// are zero, masters the unrounded parameter.
  Status initialize(uint64_t seed);

  /// Sees the totals, may change the scalars of the update (rate, scale); false: the step is skipped.
  using Decide = std::function<bool(const StepTotals& totals, StepScalars& scalars)>;
  /// `wants_stop`: this rank was asked to stop; every rank's totals of this step count it.
  Status run_step(InputSource& input, StepScalars scalars, const Decide& decide, bool wants_stop = false);
  Result<StepTotals> run_validation(InputSource& input);
  /// Runs a step that was skipped once more, applies nothing, and says where this rank first made a value that is not
  /// finite (rank and host are for the caller to add). Collective; several times slower than a step.
  Result<NotFinite> find_not_finite(InputSource& input, StepScalars scalars);
  /// Logits [batch, sequence, vocabulary] as f32 of the last validation entries, when the program fetches them.
  const std::vector<float>& logits() const { return logits_; }

  /// From now on the time of every instruction is added to `profile`, which must outlive it; nullptr: to none.
  void measure(StepProfile* profile) { profile_ = profile; }
  /// From now on every instruction and every wait is told to `report`, which must outlive it.
  void report_to(const RankReport& report) { report_ = &report; }

  /// Memory of a persistent tensor.
  void* data(const PersistentTensor& tensor);
  /// The communicator's group of one of the program's groups (0: the world).
  GroupId communicator_group(GroupId group) const { return groups_[group.index()]; }
  Bytes allocated() const { return device_.allocated(); }
  const Program& program() const { return program_; }
  Device& device() { return device_; }

 private:
  struct Prepared;
  Executor(const Program& program, Device& device, Communicator& communicator);
  Status allocate();
  /// In memory that peers reach, when the communicator has such and the device can compute in it.
  Result<void*> allocate_shared_arena(int64_t bytes);
  Status prepare(KernelCache& kernels);
  void* pointer(BufferId buffer, int slot) const;
  Status run(const std::vector<TimetableEntry>& entries, InputSource& input, StepScalars& scalars,
             const Decide& decide);
  Status finish_sends();
  Status run_block(const TimetableEntry& entry, InputSource& input, StepScalars& scalars, const Decide& decide);
  void tell_move(bool waits) const;
  /// `label`: of the instruction that it is the event of.
  Status wait(Event event, const std::string& label);
  /// True: the block ends here.
  Result<bool> issue(const Instruction& instruction, Prepared& prepared, size_t index, const TimetableEntry& entry,
                     InputSource& input, StepScalars& scalars, const Decide& decide);
  Status compute(const Instruction& instruction, const ComputeInstruction& what, Prepared& prepared,
                 const TimetableEntry& entry, const StepScalars& scalars);
  Status feed(const FeedInstruction& what, Prepared& prepared, const TimetableEntry& entry, InputSource& input);
  Result<bool> fetch(const FetchInstruction& what, StepScalars& scalars, const Decide& decide);
  Status initialize_tensor(const PersistentTensor& tensor, uint64_t seed);

  const Program& program_;
  Device& device_;
  Communicator& communicator_;
  void* arenas_[3] = {nullptr, nullptr, nullptr};
  std::vector<void*> registered_;                ///< arenas that are the communicator's
  std::vector<std::vector<Prepared>> prepared_;  ///< [block][instruction]
  std::vector<GroupId> groups_;                  ///< communicator's group of each program group; invalid: not a member
  std::vector<Event> events_;                    ///< of the current block's instructions
  std::vector<Event> last_send_;                 ///< by buffer
  const PersistentTensor* totals_ = nullptr;
  NotFiniteSearch* search_ = nullptr;  ///< looks on while it is there
  StepProfile* profile_ = nullptr;     ///< the same
  const RankReport* report_ = nullptr;
  std::vector<char> host_;  ///< staging of feeds and fetches
  std::vector<float> logits_;
};

}  // namespace altiplano
