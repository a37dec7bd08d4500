#pragma once
// Program of one rank: blocks (straight-line instruction lists) + timetable + buffers + process groups. Built by
// lowering, read by the verifier, the simulator and the executor; none of them changes it.
//
// Memory: arenas are allocated once before the first step. kPersistent: weights, optimizer state, gradient
// accumulators, totals. kStash: `num_stash_slots` slots of `stash_slot_bytes`, one per microbatch in flight. kWork:
// everything that lives inside one block, laid out by offset from lifetimes. A bucket is several tensors laid side by
// side for one collective. Peak = sum of arenas, exact (invariant 4).
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "framework/base/ids.hpp"
#include "framework/base/units.hpp"
#include "framework/cluster/collective.hpp"
#include "framework/graph/training_graph.hpp"
#include "framework/program/timetable.hpp"
#include "framework/sharding/box.hpp"

namespace altiplano {

enum class Space : uint8_t { kDevice, kPinned, kShared, kFile };
enum class Arena : uint8_t { kPersistent, kStash, kWork };
const char* to_string(Arena arena);

struct Buffer {
  BufferId id;
  std::string name;  ///< "block.3.mlp.out" or "wire:..."
  Space space = Space::kDevice;
  Arena arena = Arena::kWork;
  int64_t offset = 0;  ///< bytes; within a slot for kStash
  int64_t bytes = 0;
  DType dtype = DType::kF32;
  std::vector<int64_t> extents;     ///< local
  int bucket = -1;                  ///< buffers of one bucket lie side by side
  BlockId block;                    ///< kWork: the block it lives in
  int first_use = 0, last_use = 0;  ///< kWork: instruction indices
};

/// An operand of a compute instruction: buffer plus where its box lies.
struct Operand {
  BufferId buffer;
  std::vector<int64_t> origin;
  Shape global;
  int batch_dim = -1;
};

struct ComputeInstruction {
  std::string kind;
  Attributes attributes;
  std::vector<Operand> inputs, outputs;
  BufferId workspace;  ///< invalid: none
  OpId op;
};
struct CollectiveInstruction {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  ReduceKind reduce = ReduceKind::kSum;
  GroupId group;
  BufferId in, out;
  int64_t count = 0;  ///< elements, as in CollectiveCall
};
/// Peer transfer of a whole buffer. tag identifies the message; the microbatch is added at run time. `transfer`: the
/// least tag of all the pieces of the tensor that goes from one stage to another.
struct SendInstruction {
  RankId peer;
  BufferId buffer;
  uint64_t tag = 0;
  uint64_t transfer = 0;
};
struct RecvInstruction {
  RankId peer;
  BufferId buffer;
  uint64_t tag = 0;
  uint64_t transfer = 0;
};
/// destination[part] = (or +=) source[part]. The boxes start `*_offset` bytes into their buffers (pieces of a wire
/// buffer).
struct CopyInstruction {
  BufferId source, destination;
  BoxCopy boxes;
  bool add = false;
  int64_t source_offset = 0, destination_offset = 0;
};
struct FillInstruction {
  BufferId buffer;
};  ///< zero
/// Host data of the microbatch into a buffer: box of input `value` (tokens, labels).
struct FeedInstruction {
  ValueId value;
  BufferId buffer;
  Box box;
  int batch_dim = 0;
};
/// Waits until the last send that reads `buffer` has been taken over: before the buffer is written again.
struct WaitSendInstruction {
  BufferId buffer;
};
/// kTotals: the step's totals to the host, where all ranks take the same decision (skip, clip, rate); a skip ends the
/// block here. kLogits: the logits of a generation block.
enum class FetchKind : uint8_t { kTotals, kLogits };
struct FetchInstruction {
  BufferId buffer;
  FetchKind what = FetchKind::kTotals;
};

struct Instruction {
  std::variant<ComputeInstruction, CollectiveInstruction, SendInstruction, RecvInstruction, CopyInstruction,
               FillInstruction, FeedInstruction, WaitSendInstruction, FetchInstruction>
      what;
  StreamKind stream = StreamKind::kCompute;
  std::vector<int> after;  ///< indices of earlier instructions of the block that must be complete
  std::string label;       ///< for text and messages
};

/// A step's first backward assigns the gradient accumulators (kFirst), all later ones add to them (kLater).
enum class MicrobatchVariant : uint8_t { kAny, kFirst, kLater };
const char* to_string(MicrobatchVariant variant);

struct Block {
  BlockId id;
  std::string name;  ///< "F", "B.first", "B.later", "U", "V", "G"
  ActionKind kind = ActionKind::kForward;
  int chunk = 0;
  MicrobatchVariant variant = MicrobatchVariant::kAny;
  std::vector<Instruction> instructions;
};

struct TimetableEntry {
  Action action;
  BlockId block;
  int stash_slot = -1;  ///< slot of the microbatch; -1: none
};

struct ProcessGroup {
  GroupId id;
  std::string name;           ///< "s0.data/1"
  std::vector<RankId> ranks;  ///< group order
};

/// Totals of a step or validation, f64, in this order.
/// kStopRequests: ranks that were asked to stop (a signal); the host writes it before the step, so that all learn it
/// together.
enum class Total : uint8_t { kLossSum, kTokenCount, kNormSquared, kStopRequests };
inline constexpr int kNumTotals = 4;

/// Persistent tensors by name: what checkpoints save and restore, what memory is made of.
enum class TensorRole : uint8_t { kParameter, kParameterCopy, kGradient, kOptimizerState, kMaster, kTotals };
struct PersistentTensor {
  std::string name;  ///< parameter name, "<parameter>.m", …
  TensorRole role = TensorRole::kParameter;
  BufferId buffer;
  Shape global;
  Box box;
  bool is_owner = true;  ///< first replica: writes this box to checkpoints, counts it
  Initializer init;
};

struct Program {
  RankId rank;
  StageId stage;
  std::vector<ProcessGroup> groups;  ///< of the whole world, same order on every rank
  std::vector<Buffer> buffers;
  std::vector<Block> blocks;
  std::vector<TimetableEntry> step;        ///< one training step
  std::vector<TimetableEntry> validation;  ///< one validation batch (V per microbatch, then totals)
  std::vector<PersistentTensor> tensors;
  int64_t persistent_bytes = 0, stash_slot_bytes = 0, work_bytes = 0;
  int num_stash_slots = 0;
  int64_t microbatch_samples = 0;    ///< samples per microbatch on this replica
  int64_t replica_first_sample = 0;  ///< global-batch index of the replica's first sample

  Bytes peak() const { return Bytes(persistent_bytes + stash_slot_bytes * num_stash_slots + work_bytes); }
  const Buffer& buffer(BufferId id) const { return buffers[id.index()]; }
  std::string to_string() const;
};

/// Calls visit(buffer, is_write) for every buffer an instruction touches.
void for_each_buffer(const Instruction& instruction, const std::function<void(BufferId, bool is_write)>& visit);

/// Proves for the programs of all ranks together: no deadlock with zero buffering (rendezvous), sends match receives in
/// peer, tag and bytes, calls of a group match in kind, count and type in one order, every work and stash buffer
/// written before it is read, work buffers that live at the same time do not overlap, offsets inside their arenas. Step
/// and validation are rehearsed each by itself. kInvalidArgument names rank, block and instruction.
Status verify_programs(const std::vector<Program>& programs);
/// The same of some ranks' programs (lower_representatives), as far as they meet each other: ranks that are not among
/// them are taken to answer every message and to come to every collective.
Status verify_representatives(const std::vector<Program>& programs);
/// The part of it that needs one rank's program only: what is read was written, nothing overlaps, all lies in its
/// arena.
Status verify_program(const Program& program);

}  // namespace altiplano
