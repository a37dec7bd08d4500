#include <bit>

#include "framework/api/collectives/schedule_builder.hpp"

namespace altiplano {
namespace {

/// all_reduce among the largest power of two of the ranks, of which the first `extra` have taken in a neighbour.
class RecursiveBuilder : ScheduleBuilder {
 public:
  RecursiveBuilder(const CollectiveCall& call, const GroupPlace& group)
      : ScheduleBuilder(call, group, size_of(call.dtype)),
        power_(static_cast<int>(std::bit_floor(static_cast<unsigned>(group.num_ranks)))),
        extra_(group.num_ranks - power_) {}

  CollectiveSchedule build(bool halves) {
    make_scratch(call_.count);
    copy(stage(), out_, in_, call_.count);
    const bool has_partner = me_ < 2 * extra_, is_out = has_partner && me_ % 2 == 0;
    if (has_partner) fold(is_out);
    if (!is_out) halves ? halve_and_double(place()) : double_whole(place());
    if (has_partner) unfold(is_out);
    return std::move(schedule_);
  }

 private:
  struct Exchange {
    int partner = 0;
    int64_t kept = 0, num_kept = 0, given = 0, num_given = 0;
  };

  int place() const { return me_ < 2 * extra_ ? me_ / 2 : me_ - extra_; }
  int rank_at(int place) const { return place < extra_ ? 2 * place + 1 : place + extra_; }

  void fold(bool is_out) {
    CollectiveStage& s = stage();
    if (is_out) return send(s, me_ + 1, out_, call_.count);
    receive(s, me_ - 1, scratch(0), call_.count);
    reduce(s, out_, {scratch(0), out_}, call_.count);
  }
  void unfold(bool is_out) {
    CollectiveStage& s = stage();
    if (is_out) return receive(s, me_ + 1, out_, call_.count);
    send(s, me_ - 1, out_, call_.count);
  }

  /// Both sides add the lower rank's first.
  void exchange_and_add(const Exchange& x) {
    CollectiveStage& s = stage();
    send(s, x.partner, at(out_, x.given), x.num_given);
    receive(s, x.partner, scratch(0), x.num_kept);
    std::byte* own = at(out_, x.kept);
    if (x.partner < me_)
      reduce(s, own, {scratch(0), own}, x.num_kept);
    else
      reduce(s, own, {own, scratch(0)}, x.num_kept);
  }

  void double_whole(int place) {
    for (int distance = 1; distance < power_; distance *= 2)
      exchange_and_add({rank_at(place ^ distance), 0, call_.count, 0, call_.count});
  }

  void halve_and_double(int place) {
    std::vector<Exchange> exchanges;
    int64_t begin = 0, count = call_.count;
    for (int distance = power_ / 2; distance > 0; distance /= 2) {
      const int64_t low = (count + 1) / 2;
      Exchange x{rank_at(place ^ distance), begin, low, begin + low, count - low};
      if ((place & distance) != 0) {
        std::swap(x.kept, x.given);
        std::swap(x.num_kept, x.num_given);
      }
      begin = x.kept;
      count = x.num_kept;
      exchange_and_add(x);
      exchanges.push_back(x);
    }
    for (; !exchanges.empty(); exchanges.pop_back()) {
      const Exchange& x = exchanges.back();
      CollectiveStage& s = stage();
      send(s, x.partner, at(out_, x.kept), x.num_kept);
      receive(s, x.partner, at(out_, x.given), x.num_given);
    }
  }

  const int power_, extra_;
};

}  // namespace

CollectiveSchedule recursive_schedule(const CollectiveCall& call, const GroupPlace& group, bool halves) {
  return RecursiveBuilder(call, group).build(halves);
}

}  // namespace altiplano
