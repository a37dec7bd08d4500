#include "framework/api/collectives/schedule_builder.hpp"

namespace altiplano {
namespace {

constexpr int64_t kSmallAllReduce = 8192;  // bytes up to which one round of messages beats two

class DirectBuilder : ScheduleBuilder {
 public:
  using ScheduleBuilder::ScheduleBuilder;

  CollectiveSchedule build() {
    switch (call_.kind) {
      case CollectiveKind::kAllReduce:
        all_reduce();
        break;
      case CollectiveKind::kReduceScatter:
        reduce_scatter();
        break;
      case CollectiveKind::kAllGather:
        exchange_blocks(0);
        break;
      default:
        exchange_blocks(call_.count);
    }
    return std::move(schedule_);
  }

 private:
  /// The other ranks, nearest successor first, so that not all start with the same one.
  int other(int k) const { return (me_ + k) % n_; }

  /// Receives `count` elements of every other rank into scratch and reduces them with `own` into `to`.
  void receive_and_reduce(CollectiveStage& s, std::byte* own, std::byte* to, int64_t count) {
    std::vector<const std::byte*> sources(static_cast<size_t>(n_));
    sources[static_cast<size_t>(me_)] = own;
    for (int k = 1; k < n_; ++k) {
      std::byte* slot = scratch((k - 1) * count);
      receive(s, other(k), slot, count);
      sources[static_cast<size_t>(other(k))] = slot;
    }
    reduce(s, to, std::move(sources), count);
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
  std::pair<int64_t, int64_t> owned(int64_t begin, int rank) const {
    return part(begin, std::min(n_ * piece_, call_.count - begin), n_, rank);
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

  /// `stride`: between what two peers are sent; 0: all the same.
  void exchange_blocks(int64_t stride) {
    CollectiveStage& s = stage();
    for (int k = 1; k < n_; ++k) {
      send(s, other(k), at(in_, other(k) * stride), call_.count);
      receive(s, other(k), at(out_, other(k) * call_.count), call_.count);
    }
    copy(s, at(out_, me_ * call_.count), at(in_, me_ * stride), call_.count);
  }
};

}  // namespace

CollectiveSchedule direct_schedule(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes) {
  return DirectBuilder(call, group, piece_bytes).build();
}

}  // namespace altiplano
