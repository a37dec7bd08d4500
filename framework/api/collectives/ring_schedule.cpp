#include "framework/api/collectives/schedule_builder.hpp"

namespace altiplano {
namespace {

class RingBuilder : ScheduleBuilder {
 public:
  using ScheduleBuilder::ScheduleBuilder;

  CollectiveSchedule build() {
    if (call_.kind == CollectiveKind::kAllGather) {
      all_gather();
    } else if (call_.kind == CollectiveKind::kReduceScatter) {
      reduce_scatter();
    } else {
      all_reduce();
    }
    return std::move(schedule_);
  }

 private:
  int next() const { return (me_ + 1) % n_; }
  int previous() const { return (me_ + n_ - 1) % n_; }
  int back(int steps) const { return ((me_ - steps) % n_ + n_) % n_; }

  void all_reduce() {
    if (n_ == 1) return copy(stage(), out_, in_, call_.count);
    make_scratch(piece_);
    const int64_t stride = n_ * piece_;
    for (int64_t begin = 0; begin < std::max<int64_t>(call_.count, 1); begin += stride) reduce_round(begin);
  }
  std::pair<int64_t, int64_t> block(int64_t begin, int rank) const {
    return part(begin, std::min(n_ * piece_, call_.count - begin), n_, rank);
  }
  /// Block b is at rank b + n - 1 when it is summed; it goes once more around then.
  void reduce_round(int64_t begin) {
    for (int step = 0; step < n_ - 1; ++step) {
      CollectiveStage& s = stage();
      const auto [sent, sent_count] = block(begin, back(step));
      const auto [got, count] = block(begin, back(step + 1));
      send(s, next(), at(step == 0 ? in_ : out_, sent), sent_count);
      receive(s, previous(), scratch(0), count);
      reduce(s, at(out_, got), {scratch(0), at(in_, got)}, count);
    }
    for (int step = 0; step < n_ - 1; ++step) {
      CollectiveStage& s = stage();
      const auto [sent, sent_count] = block(begin, back(step - 1));
      const auto [got, count] = block(begin, back(step));
      send(s, next(), at(out_, sent), sent_count);
      receive(s, previous(), at(out_, got), count);
    }
  }

  void reduce_scatter() {
    if (n_ == 1) return copy(stage(), out_, in_, call_.count);
    make_scratch(2 * piece_);
    for (int64_t begin = 0; begin < std::max<int64_t>(call_.count, 1); begin += piece_) {
      const int64_t count = std::min(piece_, call_.count - begin);
      const auto own = [&](int rank) { return at(in_, rank * call_.count + begin); };
      for (int step = 0; step < n_ - 1; ++step) {
        CollectiveStage& s = stage();
        send(s, next(), step == 0 ? own(back(1)) : scratch(piece_), count);
        receive(s, previous(), scratch(0), count);
        const bool is_last = step == n_ - 2;
        reduce(s, is_last ? at(out_, begin) : scratch(piece_), {scratch(0), own(back(step + 2))}, count);
      }
    }
  }

  void all_gather() {
    if (n_ == 1) return copy(stage(), out_, in_, call_.count);
    for (int step = 0; step < n_ - 1; ++step) {
      CollectiveStage& s = stage();
      send(s, next(), step == 0 ? in_ : at(out_, back(step) * call_.count), call_.count);
      receive(s, previous(), at(out_, back(step + 1) * call_.count), call_.count);
      if (step == 0) copy(s, at(out_, me_ * call_.count), in_, call_.count);
    }
  }
};

}  // namespace

CollectiveSchedule ring_schedule(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes) {
  return RingBuilder(call, group, piece_bytes).build();
}

}  // namespace altiplano
