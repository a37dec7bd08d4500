#include "framework/api/collectives/collective_schedule.hpp"

#include <cstring>

#include "framework/api/collectives/algorithm_choice.hpp"
#include "framework/api/collectives/reduce.hpp"
#include "framework/api/collectives/schedule_builder.hpp"

namespace altiplano {
namespace {

class BroadcastBuilder : ScheduleBuilder {
 public:
  using ScheduleBuilder::ScheduleBuilder;

  CollectiveSchedule build(const TreePlace& place) {
    const int64_t pieces = std::max<int64_t>((call_.count + piece_ - 1) / piece_, 1);
    for (int64_t k = 0; k <= pieces; ++k) {
      CollectiveStage& s = stage();
      const auto size = [&](int64_t piece) { return std::min(piece_, call_.count - piece * piece_); };
      if (k < pieces && place.parent >= 0) receive(s, place.parent, at(out_, k * piece_), size(k));
      if (k > 0)
        for (int child : place.children) send(s, child, at(out_, (k - 1) * piece_), size(k - 1));
    }
    return std::move(schedule_);
  }
};

class BarrierBuilder : ScheduleBuilder {
 public:
  using ScheduleBuilder::ScheduleBuilder;

  CollectiveSchedule build() {
    for (int distance = 1; distance < n_; distance *= 2) {
      CollectiveStage& s = stage();
      send(s, (me_ + distance) % n_, nullptr, 0);
      receive(s, (me_ - distance + n_) % n_, nullptr, 0);
    }
    return std::move(schedule_);
  }
};

CollectiveSchedule tree_schedule(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes) {
  const int n = group.num_ranks;
  const auto rank_at = [&](int place) { return (place + call.root) % n; };
  TreePlace place = place_in_tree(n, (group.index - call.root + n) % n);
  if (place.parent >= 0) place.parent = rank_at(place.parent);
  for (int& child : place.children) child = rank_at(child);
  return broadcast_down(call, group, piece_bytes, place);
}

}  // namespace

TreePlace place_in_tree(int n, int place) {
  constexpr int kLargestFlat = 4;
  TreePlace result;
  if (n <= kLargestFlat) {
    if (place > 0) result.parent = 0;
    for (int child = 1; place == 0 && child < n; ++child) result.children.push_back(child);
    return result;
  }
  int bit = 1;
  for (; bit < n && (place & bit) == 0; bit *= 2) {
  }
  if (place > 0) result.parent = place - bit;
  for (bit /= 2; bit > 0; bit /= 2)
    if (place + bit < n) result.children.push_back(place + bit);
  return result;
}

CollectiveSchedule broadcast_down(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes,
                                  const TreePlace& place) {
  return BroadcastBuilder(call, group, piece_bytes).build(place);
}

CollectiveSchedule collective_schedule(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes,
                                       MessageAlgorithm wanted, bool two_level) {
  const int64_t bytes = call.count * size_of(call.dtype);
  switch (choose_algorithm(call.kind, bytes, group, wanted, two_level).steps) {
    case CollectiveSteps::kDirect:
      return direct_schedule(call, group, piece_bytes);
    case CollectiveSteps::kRing:
      return ring_schedule(call, group, piece_bytes);
    case CollectiveSteps::kDoubling:
      return recursive_schedule(call, group, false);
    case CollectiveSteps::kHalving:
      return recursive_schedule(call, group, true);
    case CollectiveSteps::kTwoLevel:
      return two_level_schedule(call, group, piece_bytes);
    case CollectiveSteps::kTree:
      return tree_schedule(call, group, piece_bytes);
    case CollectiveSteps::kDissemination:
      break;
  }
  return BarrierBuilder(call, group, piece_bytes).build();
}

void run_actions(const CollectiveStage& stage, DType dtype, ReduceKind reduce) {
  for (const CollectiveAction& action : stage.actions) {
    if (action.count == 0) continue;
    if (action.sources.size() > 1) {
      reduce_in_order(action.out, action.sources, action.count, dtype, reduce);
    } else if (action.out != action.sources[0]) {
      std::memmove(action.out, action.sources[0], static_cast<size_t>(action.count * size_of(dtype)));
    }
  }
}

}  // namespace altiplano
