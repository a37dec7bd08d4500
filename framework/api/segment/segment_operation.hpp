#pragma once
// What a SegmentCommunicator keeps of its groups and of operations that are not done.
#include <chrono>
#include <string>
#include <vector>

#include "framework/api/collectives/collective_schedule.hpp"
#include "framework/api/comm.hpp"
#include "framework/api/segment/peer_channel.hpp"

namespace altiplano {

struct SegmentGroup {
  std::string name;
  std::vector<int> ranks;  ///< of the world, in the group's order
  int index = 0;           ///< this rank's place
  uint64_t context = 0;    ///< equal on all members, distinct between groups
  uint64_t calls = 0;
};

enum class OperationKind : uint8_t { kSend, kReceive, kCollective };

/// What check_calls compares.
struct CallRecord {
  int64_t sequence = 0, count = 0;
  int32_t kind = 0, reduce = 0, dtype = 0, root = 0;
  bool operator==(const CallRecord&) const = default;
};

struct SegmentOperation : TransferOwner {
  uint64_t id = 0;
  OperationKind kind = OperationKind::kSend;
  std::vector<uint64_t> after;
  bool is_started = false;
  std::chrono::steady_clock::time_point issued;
  int64_t step = 0;
  std::vector<Transfer> transfers;  ///< of a message, or of the collective's present stage

  // Collectives only.
  const SegmentGroup* group = nullptr;
  CollectiveCall call;
  StreamKind stream = StreamKind::kCollective;
  uint64_t sequence = 0;
  CollectiveSchedule schedule;
  size_t next_stage = 0;
  std::vector<CallRecord> records;  ///< of all members when calls are checked
};

/// "all_reduce #88 of group data/1 (64.0 MiB, bf16)", "recv tag 7 (4.0 KiB)".
std::string describe(const SegmentOperation& operation);
/// "all_reduce sum of 100 f32"
std::string describe(const CallRecord& record);
CallRecord record_of(const SegmentOperation& operation);

}  // namespace altiplano
