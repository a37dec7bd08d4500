#include "framework/api/collectives/collective_schedule.hpp"

#include <algorithm>
#include <cstring>

#include "framework/api/collectives/reduce.hpp"

namespace altiplano {
namespace {

constexpr int64_t kSmallAllReduce = 8192;  // bytes up to which one round of messages beats two
constexpr int kLargestFlatBroadcast = 4;

class Builder {
 public:
  Builder(const CollectiveCall& call, int num_ranks, int index, int64_t piece_bytes)
      : call_(call),
        n_(num_ranks),
        me_(index),
        element_(size_of(call.dtype)),
        piece_(std::max<int64_t>(piece_bytes / element_, 1)),
        in_(static_cast<std::byte*>(const_cast<void*>(call.in))),
        out_(static_cast<std::byte*>(call.out)) {}

  CollectiveSchedule build() {
    switch (call_.kind) {
      case CollectiveKind::kAllReduce:
        all_reduce();
        break;
      case CollectiveKind::kAllGather:
        all_gather();
        break;
      case CollectiveKind::kReduceScatter:
        reduce_scatter();
        break;
      case CollectiveKind::kAllToAll:
        all_to_all();
        break;
      case CollectiveKind::kBroadcast:
        broadcast();
        break;
      case CollectiveKind::kBarrier:
        barrier();
        break;
    }
    return std::move(schedule_);
  }

 private:
  CollectiveStage& stage() { return schedule_.stages.emplace_back(); }
  std::byte* at(std::byte* base, int64_t elements) const { return base + elements * element_; }
  /// The other ranks, nearest successor first, so that not all start with the same one.
  int other(int k) const { return (me_ + k) % n_; }
  void send(CollectiveStage& s, int peer, std::byte* data, int64_t count) const {
    s.messages.push_back({peer, true, data, count * element_});
  }
  void receive(CollectiveStage& s, int peer, std::byte* data, int64_t count) const {
    s.messages.push_back({peer, false, data, count * element_});
  }
  void copy(CollectiveStage& s, std::byte* to, const std::byte* from, int64_t count) const {
    if (to != from && count > 0) s.actions.push_back({to, {from}, count});
  }
  void make_scratch(int64_t elements) {
    schedule_.scratch = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(elements * element_));
  }

  /// Receives `count` elements of every other rank into scratch and reduces them with `own` into `to`.
  void receive_and_reduce(CollectiveStage& s, std::byte* own, std::byte* to, int64_t count) {
    CollectiveAction reduce{to, std::vector<const std::byte*>(static_cast<size_t>(n_)), count};
    reduce.sources[static_cast<size_t>(me_)] = own;
    for (int k = 1; k < n_; ++k) {
      std::byte* slot = at(schedule_.scratch.get(), (k - 1) * count);
      receive(s, other(k), slot, count);
      reduce.sources[static_cast<size_t>(other(k))] = slot;
    }
    s.actions.push_back(std::move(reduce));
  }

  void all_reduce() {
    if (call_.count * element_ <= kSmallAllReduce || n_ == 1) return exchange_and_reduce();
    const int64_t stride = n_ * piece_;  // elements of one round
    const int64_t rounds = (call_.count + stride - 1) / stride;
    make_scratch((n_ - 1) * piece_);
    for (int64_t round = 0; round <= rounds; ++round) {
      CollectiveStage& s = stage();
      if (round > 0) gather_round((round - 1) * stride, s);
      if (round < rounds) scatter_round(round * stride, s);
    }
  }
  void exchange_and_reduce() {
    make_scratch((n_ - 1) * call_.count);
    CollectiveStage& s = stage();
    for (int k = 1; k < n_; ++k) send(s, other(k), in_, call_.count);
    receive_and_reduce(s, in_, out_, call_.count);
  }
  /// Rank r owns elements [begin + r * block, ...) of a round; the last blocks may be short or empty.
  std::pair<int64_t, int64_t> owned(int64_t begin, int rank) const {
    const int64_t in_round = std::min(n_ * piece_, call_.count - begin);
    const int64_t block = (in_round + n_ - 1) / n_;
    const int64_t from = std::min<int64_t>(rank * block, in_round);
    return {begin + from, std::min(block, in_round - from)};
  }
  void scatter_round(int64_t begin, CollectiveStage& s) {
    for (int k = 1; k < n_; ++k) {
      const auto [from, count] = owned(begin, other(k));
      send(s, other(k), at(in_, from), count);
    }
    const auto [from, count] = owned(begin, me_);
    receive_and_reduce(s, at(in_, from), at(out_, from), count);
  }
  void gather_round(int64_t begin, CollectiveStage& s) {
    const auto [mine, my_count] = owned(begin, me_);
    for (int k = 1; k < n_; ++k) {
      const auto [from, count] = owned(begin, other(k));
      send(s, other(k), at(out_, mine), my_count);
      receive(s, other(k), at(out_, from), count);
    }
  }

  void reduce_scatter() {
    make_scratch((n_ - 1) * std::min(piece_, call_.count));
    for (int64_t begin = 0; begin < std::max<int64_t>(call_.count, 1); begin += piece_) {
      const int64_t count = std::min(piece_, call_.count - begin);
      CollectiveStage& s = stage();
      for (int k = 1; k < n_; ++k) send(s, other(k), at(in_, other(k) * call_.count + begin), count);
      receive_and_reduce(s, at(in_, me_ * call_.count + begin), at(out_, begin), count);
    }
  }

  void all_gather() {
    CollectiveStage& s = stage();
    for (int k = 1; k < n_; ++k) {
      send(s, other(k), in_, call_.count);
      receive(s, other(k), at(out_, other(k) * call_.count), call_.count);
    }
    copy(s, at(out_, me_ * call_.count), in_, call_.count);
  }

  void all_to_all() {
    CollectiveStage& s = stage();
    for (int k = 1; k < n_; ++k) {
      send(s, other(k), at(in_, other(k) * call_.count), call_.count);
      receive(s, other(k), at(out_, other(k) * call_.count), call_.count);
    }
    copy(s, at(out_, me_ * call_.count), at(in_, me_ * call_.count), call_.count);
  }

  void broadcast() {
    const int place = (me_ - call_.root + n_) % n_;  // in the tree; the root is 0
    const auto rank_at = [&](int p) { return (p + call_.root) % n_; };
    std::vector<int> children;
    int parent = 0;
    if (n_ <= kLargestFlatBroadcast) {
      for (int p = 1; place == 0 && p < n_; ++p) children.push_back(rank_at(p));
    } else {
      int bit = 1;
      for (; bit < n_ && (place & bit) == 0; bit *= 2) {
      }
      parent = place - (place == 0 ? 0 : bit);
      for (bit /= 2; bit > 0; bit /= 2)
        if (place + bit < n_) children.push_back(rank_at(place + bit));
    }
    const int64_t pieces = std::max<int64_t>((call_.count + piece_ - 1) / piece_, 1);
    for (int64_t k = 0; k <= pieces; ++k) {
      CollectiveStage& s = stage();
      const auto size = [&](int64_t piece) { return std::min(piece_, call_.count - piece * piece_); };
      if (k < pieces && place != 0) receive(s, rank_at(parent), at(out_, k * piece_), size(k));
      if (k > 0)
        for (int child : children) send(s, child, at(out_, (k - 1) * piece_), size(k - 1));
    }
  }

  void barrier() {
    for (int distance = 1; distance < n_; distance *= 2) {
      CollectiveStage& s = stage();
      send(s, (me_ + distance) % n_, nullptr, 0);
      receive(s, (me_ - distance + n_) % n_, nullptr, 0);
    }
  }

  const CollectiveCall& call_;
  int n_, me_;
  int64_t element_, piece_;
  std::byte* in_;
  std::byte* out_;
  CollectiveSchedule schedule_;
};

}  // namespace

CollectiveSchedule collective_schedule(const CollectiveCall& call, int num_ranks, int index, int64_t piece_bytes) {
  return Builder(call, num_ranks, index, piece_bytes).build();
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
