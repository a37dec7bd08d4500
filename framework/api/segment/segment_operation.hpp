#pragma once
// What a SegmentCommunicator keeps of its groups and of operations that are not done.
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/collectives/collective_schedule.hpp"
#include "framework/api/comm.hpp"
#include "framework/api/segment/meeting.hpp"
#include "framework/api/segment/peer_channel.hpp"

namespace altiplano {

struct SegmentGroup {
  std::string name;
  std::vector<int> ranks;  ///< of the world, in the group's order
  int index = 0;           ///< this rank's place
  uint64_t context = 0;    ///< equal on all members, distinct between groups
  uint64_t calls = 0;
  std::array<uint64_t, kLanes> calls_on_lane{};
  GroupMeetings meetings;
};

enum class OperationKind : uint8_t { kSend, kReceive, kCollective };

/// What members of a group compare when they meet.
struct CallRecord {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceKind reduce = ReduceKind::kSum;
  DType dtype = DType::kF32;
  int64_t count = 0;
  int root = 0;
  bool operator==(const CallRecord&) const = default;
};

/// A collective that reaches all members' buffers goes from kMeeting to kFinishing, any other to kMessages.
enum class CollectivePhase : uint8_t { kMeeting, kFinishing, kMessages };

struct SegmentOperation : TransferOwner {
  uint64_t id = 0;
  OperationKind kind = OperationKind::kSend;
  std::vector<uint64_t> after;
  bool is_started = false;
  std::chrono::steady_clock::time_point issued;
  int64_t step = 0;
  std::vector<Transfer> transfers;  ///< of a message, or of the collective's present stage

  // Collectives only.
  SegmentGroup* group = nullptr;
  CollectiveCall call;
  StreamKind stream = StreamKind::kCollective;
  uint64_t sequence = 0;          ///< among the group's calls
  uint64_t sequence_on_lane = 0;  ///< among those of its stream
  CollectivePhase phase = CollectivePhase::kMeeting;
  CollectiveSchedule schedule;  ///< of kMessages
  size_t next_stage = 0;

  size_t lane() const { return static_cast<size_t>(stream); }
};

/// The operations that are not done, by id. They are used again, so that in the long run none is allocated.
class Operations {
 public:
  Operations();
  /// `id` is larger than any before.
  SegmentOperation& begin(uint64_t id);
  void end(uint64_t id);
  SegmentOperation* find(uint64_t id) const;  ///< nullptr: done

 private:
  std::vector<std::unique_ptr<SegmentOperation>> all_;
  std::vector<SegmentOperation*> live_;  ///< ids ascend
  std::vector<SegmentOperation*> free_;
};

/// Messages of the same direction, peer and tag keep their order.
bool is_same_queue(const SegmentOperation& a, const SegmentOperation& b);

/// "all_reduce #88 of group data/1 (64.0 MiB, bf16)", "recv tag 7 (4.0 KiB)".
std::string describe(const SegmentOperation& operation);
/// "all_reduce sum of 100 f32"
std::string describe(const CallRecord& record);
CallRecord record_of(const CollectiveCall& call);
CallRecord record_of(const MeetingPost& post);

}  // namespace altiplano
