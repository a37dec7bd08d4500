#pragma once
// Where the members of a group meet for a collective: each shows what it calls, and either the data itself or where it
// lies, and sees the others' posts. A small call is complete then; a larger one runs in place
// (collectives/in_place.hpp) and is complete when all have said that they are finished.
//
// A place is found by the group's context in its rank's table, so that groups need no agreement when they are made.
#include <span>
#include <vector>

#include "framework/api/comm.hpp"
#include "framework/api/segment/segment_layout.hpp"
#include "framework/api/segment/shared_memory.hpp"

namespace altiplano {

class GroupMeetings {
 public:
  GroupMeetings() = default;
  /// `own`: this rank's place, the `slot`-th group it created. Ranks in the group's order.
  GroupMeetings(const SegmentView& view, std::span<const int> ranks, size_t index, uint64_t context, int slot);

  /// Shows this member's part of call number `sequence` of the stream: the data, or the names of its buffers.
  void post(size_t lane, uint64_t sequence, const CollectiveCall& call, const BufferName& in, const BufferName& out);
  /// nullptr: not there yet.
  const MeetingPost* post_of(size_t member, size_t lane, uint64_t sequence);
  void finish(size_t lane, uint64_t sequence);
  bool has_finished(size_t member, size_t lane, uint64_t sequence) const;

  // For the one call at a time that runs: the members' buffers as this rank reaches them.
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;

 private:
  MeetingPlace* place(size_t member, size_t lane);

  SegmentView view_;
  std::vector<int> ranks_;
  std::vector<int> slots_;  ///< by member; -1: not found yet
  size_t index_ = 0;
  uint64_t context_ = 0;
};

/// Whether the data of the call travels in the post.
bool fits_in_post(const CollectiveCall& call, int num_ranks);
BufferName name_in_post(const MeetingPost& post, bool is_out);

}  // namespace altiplano
