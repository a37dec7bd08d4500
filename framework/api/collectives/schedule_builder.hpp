#pragma once
// Private to collectives/: what the builders of schedules have in common.
#include <algorithm>
#include <utility>

#include "framework/api/collectives/collective_schedule.hpp"

namespace altiplano {

class ScheduleBuilder {
 public:
  ScheduleBuilder(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes)
      : call_(call),
        n_(group.num_ranks),
        me_(group.index),
        element_(size_of(call.dtype)),
        piece_(std::max<int64_t>(piece_bytes / element_, 1)),
        in_(static_cast<std::byte*>(const_cast<void*>(call.in))),
        out_(static_cast<std::byte*>(call.out)) {}

 protected:
  CollectiveStage& stage() { return schedule_.stages.emplace_back(); }
  std::byte* at(std::byte* base, int64_t elements) const { return base + elements * element_; }
  std::byte* scratch(int64_t elements) const { return at(schedule_.scratch.get(), elements); }
  void make_scratch(int64_t elements) {
    schedule_.scratch = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(elements * element_));
  }
  void send(CollectiveStage& s, int peer, std::byte* data, int64_t count) const {
    s.messages.push_back({peer, true, data, count * element_});
  }
  void receive(CollectiveStage& s, int peer, std::byte* data, int64_t count) const {
    s.messages.push_back({peer, false, data, count * element_});
  }
  void copy(CollectiveStage& s, std::byte* to, const std::byte* from, int64_t count) const {
    if (to != from && count > 0) s.actions.push_back({to, {from}, count});
  }
  static void reduce(CollectiveStage& s, std::byte* to, std::vector<const std::byte*> sources, int64_t count) {
    s.actions.push_back({to, std::move(sources), count});
  }

  /// The `index`-th of `parts` parts of [begin, begin + count); the last may be short or empty. {first, elements}
  static std::pair<int64_t, int64_t> part(int64_t begin, int64_t count, int64_t parts, int64_t index) {
    const int64_t block = (count + parts - 1) / parts;
    const int64_t from = std::min(index * block, count);
    return {begin + from, std::min(block, count - from)};
  }

  const CollectiveCall& call_;
  int n_, me_;
  int64_t element_, piece_;
  std::byte* in_;
  std::byte* out_;
  CollectiveSchedule schedule_;
};

CollectiveSchedule direct_schedule(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes);
CollectiveSchedule ring_schedule(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes);
/// `halves`: halving and doubling instead of doubling whole vectors.
CollectiveSchedule recursive_schedule(const CollectiveCall& call, const GroupPlace& group, bool halves);
CollectiveSchedule two_level_schedule(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes);

/// A tree over 0..n-1 whose root is 0: flat when it is small, else binomial. The farthest child is the first.
struct TreePlace {
  int parent = -1;
  std::vector<int> children;
};
TreePlace place_in_tree(int n, int place);
/// Pieces from the parent to the children; members of the group. parent < 0: the root.
CollectiveSchedule broadcast_down(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes,
                                  const TreePlace& place);

}  // namespace altiplano
