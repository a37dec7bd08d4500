#pragma once
// What a communicator has of a segment: message rings to the ranks that share it, their doorbells, meetings of groups,
// and memory that all of them reach. Ranks are of the world here; in the segment they are numbered by their order.
#include <vector>

#include "framework/api/segment/peer_channel.hpp"
#include "framework/api/segment/segment_transport.hpp"

namespace altiplano {

struct CommGroup;

class SegmentPlane {
 public:
  /// `ranks`: of the world, that share the segment, ascending; this one is among them. `completed` collects what is
  /// done.
  SegmentPlane(SegmentAttachment attachment, int rank, int world_size, std::vector<int> ranks,
               std::vector<TransferOwner*>* completed);

  const SegmentView& view() const { return view_; }
  FutexScope scope() const { return attachment_.scope; }
  int64_t piece_bytes() const { return attachment_.shape.frame_bytes; }
  ReachableMemory& memory() { return memory_; }
  const std::vector<int>& ranks() const { return ranks_; }
  bool has(int rank) const { return index_of_[static_cast<size_t>(rank)] >= 0; }
  RankSlot& slot(int rank) const { return view_.rank(index_of(rank)); }

  /// Groups of these ranks only may meet in the segment. kInvalidArgument: there are kGroupsPerRank already.
  Status attach(CommGroup& group);
  std::optional<SizeMismatch> post(Transfer& transfer);
  /// Moves what the rings hold or take; stops at a message of a size that nobody expects.
  std::optional<SizeMismatch> move(bool& moved);
  /// Whether there is data to send whose receive is posted, or with `announced` may be posted at any moment.
  bool has_wanted_data(bool announced) const;
  /// Messages whose data has had to wait for its receive, so far.
  uint64_t num_announced() const;
  /// The address here of a member's buffer.
  Result<std::byte*> reach(int rank, const BufferName& name) { return memory_.reach(index_of(rank), name); }

  void ring(int rank);  ///< wakes it when it sleeps
  void ring_members(const CommGroup& group);

 private:
  int index_of(int rank) const { return index_of_[static_cast<size_t>(rank)]; }

  const SegmentAttachment attachment_;
  const SegmentView view_;
  const int rank_;
  const std::vector<int> ranks_;
  std::vector<int> index_of_;  ///< by rank of the world; -1: not in the segment
  ReachableMemory memory_;
  std::vector<PeerChannel> channels_;  ///< by place in ranks_
  int num_groups_ = 0;
};

}  // namespace altiplano
