#pragma once
// What a communicator keeps of its groups and of operations that are not done.
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/collectives/collective_schedule.hpp"
#include "framework/api/comm.hpp"
#include "framework/api/engine/transfer.hpp"
#include "framework/api/segment/meeting.hpp"

namespace altiplano {

struct CommGroup {
  std::string name;
  std::vector<int> ranks;  ///< of the world, in the group's order
  GroupPlace shape;
  uint64_t context = 0;  ///< equal on all members, distinct between groups
  uint64_t calls = 0;
  std::array<uint64_t, kLanes> calls_on_lane{};
  bool meets_in_segment = false;  ///< all members share a segment
  GroupMeetings meetings;         ///< then

  int size() const { return static_cast<int>(ranks.size()); }
  int index() const { return shape.index; }  ///< this rank's place
};

enum class OperationKind : uint8_t { kSend, kReceive, kCollective };

/// What members of a group compare before a collective.
struct CallRecord {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceKind reduce = ReduceKind::kSum;
  DType dtype = DType::kF32;
  int64_t count = 0;
  int64_t root = 0;
  bool operator==(const CallRecord&) const = default;
};

/// A collective that reaches all members' buffers goes from kMeeting to kFinishing; any other is made of messages,
/// perhaps after the members have compared their calls by messages.
enum class CollectivePhase : uint8_t { kMeeting, kFinishing, kComparing, kMessages };

struct CommOperation : TransferOwner {
  uint64_t id = 0;
  OperationKind kind = OperationKind::kSend;
  std::vector<uint64_t> after;
  bool is_started = false;
  int64_t step = 0;
  std::vector<Transfer> transfers;  ///< of a message, or of the collective's present stage

  // Collectives only.
  CommGroup* group = nullptr;
  CollectiveCall call;
  StreamKind stream = StreamKind::kCollective;
  uint64_t sequence = 0;          ///< among the group's calls
  uint64_t sequence_on_lane = 0;  ///< among those of its stream
  CollectivePhase phase = CollectivePhase::kMeeting;
  std::vector<CallRecord> records;  ///< of kComparing, by member
  CollectiveSchedule schedule;      ///< of kMessages
  size_t next_stage = 0;

  size_t lane() const { return static_cast<size_t>(stream); }
};

/// The operations that are not done, by id. They are used again, so that in the long run none is allocated.
class Operations {
 public:
  Operations();
  /// `id` is larger than any before.
  CommOperation& begin(uint64_t id);
  void end(uint64_t id);
  CommOperation* find(uint64_t id) const;  ///< nullptr: done

 private:
  std::vector<std::unique_ptr<CommOperation>> all_;
  std::vector<CommOperation*> live_;  ///< ids ascend
  std::vector<CommOperation*> free_;
};

/// Messages of the same direction, peer and tag keep their order.
bool is_same_queue(const CommOperation& a, const CommOperation& b);

/// "all_reduce #88 of group data/1 (64.0 MiB, bf16)", "recv tag 7 (4.0 KiB)".
std::string describe(const CommOperation& operation);
/// "all_reduce sum of 100 f32"
std::string describe(const CallRecord& record);
CallRecord record_of(const CollectiveCall& call);
CallRecord record_of(const MeetingPost& post);

}  // namespace altiplano
