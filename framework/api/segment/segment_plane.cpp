#include "framework/api/segment/segment_plane.hpp"

#include <algorithm>

#include "framework/api/engine/operation.hpp"

namespace altiplano {
namespace {

std::vector<int> places_of(const std::vector<int>& ranks, int world_size) {
  std::vector<int> places(static_cast<size_t>(world_size), -1);
  for (size_t i = 0; i < ranks.size(); ++i) places[static_cast<size_t>(ranks[i])] = static_cast<int>(i);
  return places;
}

}  // namespace

SegmentPlane::SegmentPlane(SegmentAttachment attachment, int rank, int world_size, std::vector<int> ranks,
                           std::vector<TransferOwner*>* completed)
    : attachment_(std::move(attachment)),
      view_(attachment_.memory.get()),
      rank_(rank),
      ranks_(std::move(ranks)),
      index_of_(places_of(ranks_, world_size)),
      memory_(view_, index_of(rank), attachment_.arenas) {
  for (int peer : ranks_) channels_.emplace_back(view_, index_of(rank_), index_of(peer), memory_, completed);
}

Status SegmentPlane::attach(CommGroup& group) {
  group.meets_in_segment = std::all_of(group.ranks.begin(), group.ranks.end(), [&](int member) { return has(member); });
  if (!group.meets_in_segment) return Status::ok();
  if (num_groups_ == kGroupsPerRank)
    return invalid_argument("group {}: rank {} is in {} groups already, the most there can be", group.name, rank_,
                            kGroupsPerRank);
  std::vector<int> members;
  for (int member : group.ranks) members.push_back(index_of(member));
  group.meetings = GroupMeetings(view_, members, static_cast<size_t>(group.index()), group.context, num_groups_++);
  return Status::ok();
}

std::optional<SizeMismatch> SegmentPlane::post(Transfer& transfer) {
  PeerChannel& channel = channels_[static_cast<size_t>(index_of(transfer.peer))];
  if (!transfer.is_send) return channel.post_receive(transfer);
  channel.post_send(transfer);
  return std::nullopt;
}

std::optional<SizeMismatch> SegmentPlane::move(bool& moved) {
  for (int peer : ranks_) {
    bool moved_here = false;
    PeerChannel& channel = channels_[static_cast<size_t>(index_of(peer))];
    const auto mismatch = channel.drain(moved_here);
    channel.flush(moved_here);
    if (moved_here) {
      ring(peer);
      moved = true;
    }
    if (mismatch) return mismatch;
  }
  return std::nullopt;
}

bool SegmentPlane::has_wanted_data(bool announced) const {
  return std::ranges::any_of(channels_, [&](const PeerChannel& channel) {
    return channel.has_wanted_data() || (announced && channel.has_announced_data());
  });
}

uint64_t SegmentPlane::num_announced() const {
  uint64_t sum = 0;
  for (const PeerChannel& channel : channels_) sum += channel.num_announced();
  return sum;
}

void SegmentPlane::ring(int rank) {
  RankSlot& of = slot(rank);
  if (rank == rank_ || of.sleeping.load(std::memory_order_seq_cst) == 0) return;
  if (of.sleeping.exchange(0, std::memory_order_seq_cst) == 0) return;  // another peer rings
  of.doorbell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake_all(of.doorbell, attachment_.scope);
}

void SegmentPlane::ring_members(const CommGroup& group) {
  for (int member : group.ranks) ring(member);
}

}  // namespace altiplano
