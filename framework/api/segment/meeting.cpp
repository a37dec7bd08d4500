#include "framework/api/segment/meeting.hpp"

#include <algorithm>
#include <cstring>

#include "framework/api/collectives/in_place.hpp"

namespace altiplano {

GroupMeetings::GroupMeetings(const SegmentView& view, std::span<const int> ranks, size_t index, uint64_t context,
                             int slot)
    : in(ranks.size()),
      out(ranks.size()),
      view_(view),
      ranks_(ranks.begin(), ranks.end()),
      slots_(ranks.size(), -1),
      index_(index),
      context_(context) {
  slots_[index] = slot;
  view_.meetings(ranks_[index]).contexts[static_cast<size_t>(slot)].store(context);
}

MeetingPlace* GroupMeetings::place(size_t member, size_t lane) {
  RankMeetings& meetings = view_.meetings(ranks_[member]);
  int& slot = slots_[member];
  if (slot < 0) {
    const auto found = std::find(meetings.contexts.begin(), meetings.contexts.end(), context_);
    if (found == meetings.contexts.end()) return nullptr;
    slot = static_cast<int>(found - meetings.contexts.begin());
  }
  return &meetings.places[static_cast<size_t>(slot)][lane];
}

void GroupMeetings::post(size_t lane, uint64_t sequence, const CollectiveCall& call, const BufferName& in_name,
                         const BufferName& out_name) {
  MeetingPost& post = place(index_, lane)->posts[sequence & 1];
  post.count = call.count;
  post.root = call.root;
  post.kind = static_cast<uint8_t>(call.kind);
  post.reduce = static_cast<uint8_t>(call.reduce);
  post.dtype = static_cast<uint8_t>(call.dtype);
  const auto num_ranks = static_cast<int>(ranks_.size());
  if (!fits_in_post(call, num_ranks)) {
    std::memcpy(post.payload.data(), &in_name, sizeof(in_name));
    std::memcpy(post.payload.data() + sizeof(in_name), &out_name, sizeof(out_name));
  } else if (const auto bytes = static_cast<size_t>(bytes_in(call, num_ranks, static_cast<int>(index_))); bytes > 0) {
    std::memcpy(post.payload.data(), data_in(call), bytes);
  }
  post.sequence.store(sequence, std::memory_order_seq_cst);
}

const MeetingPost* GroupMeetings::post_of(size_t member, size_t lane, uint64_t sequence) {
  const MeetingPlace* at = place(member, lane);
  if (at == nullptr) return nullptr;
  const MeetingPost& post = at->posts[sequence & 1];
  return post.sequence.load(std::memory_order_seq_cst) == sequence ? &post : nullptr;
}

void GroupMeetings::finish(size_t lane, uint64_t sequence) {
  place(index_, lane)->finished.store(sequence, std::memory_order_seq_cst);
}

bool GroupMeetings::has_finished(size_t member, size_t lane, uint64_t sequence) const {
  const auto& places = view_.meetings(ranks_[member]).places;
  const MeetingPlace& at = places[static_cast<size_t>(slots_[member])][lane];
  return at.finished.load(std::memory_order_seq_cst) >= sequence;
}

bool fits_in_post(const CollectiveCall& call, int num_ranks) {
  const int contributor = call.kind == CollectiveKind::kBroadcast ? call.root : 0;
  return bytes_in(call, num_ranks, contributor) <= kPostBytes;
}

BufferName name_in_post(const MeetingPost& post, bool is_out) {
  BufferName name;
  std::memcpy(&name, post.payload.data() + (is_out ? sizeof(name) : 0), sizeof(name));
  return name;
}

}  // namespace altiplano
