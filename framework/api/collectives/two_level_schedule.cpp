#include "framework/api/collectives/algorithm_choice.hpp"
#include "framework/api/collectives/schedule_builder.hpp"

namespace altiplano {
namespace {

class TwoLevelBuilder : ScheduleBuilder {
 public:
  TwoLevelBuilder(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes)
      : ScheduleBuilder(call, group, piece_bytes), group_(group), piece_bytes_(piece_bytes) {
    hosts_.resize(static_cast<size_t>(num_hosts_of(group)));
    for (int member = 0; member < n_; ++member) {
      std::vector<int>& host = hosts_[host_of(member)];
      place_.push_back(static_cast<int>(host.size()));
      host.push_back(member);
    }
  }

  CollectiveSchedule build() {
    switch (call_.kind) {
      case CollectiveKind::kAllReduce:
        all_reduce();
        break;
      case CollectiveKind::kReduceScatter:
        reduce_scatter();
        break;
      case CollectiveKind::kAllGather:
        all_gather();
        break;
      default:
        return broadcast();
    }
    return std::move(schedule_);
  }

 private:
  size_t host_of(int member) const { return static_cast<size_t>(group_.host_of[static_cast<size_t>(member)]); }
  int place_of(int member) const { return place_[static_cast<size_t>(member)]; }
  size_t my_host() const { return host_of(me_); }
  const std::vector<int>& inside() const { return hosts_[my_host()]; }
  int64_t num_inside() const { return static_cast<int64_t>(inside().size()); }
  int64_t num_hosts() const { return static_cast<int64_t>(hosts_.size()); }
  /// The member of `host` that has to do with what is `member`'s: itself, or its counterpart.
  int owner_on(size_t host, int member) const {
    if (host_of(member) == host) return member;
    return hosts_[host][static_cast<size_t>(place_of(member)) % hosts_[host].size()];
  }

  // ---- all_reduce: column c of a round belongs to the c-th member of each host ----

  int64_t num_columns() const {
    size_t least = inside().size();
    for (const auto& host : hosts_) least = std::min(least, host.size());
    return static_cast<int64_t>(least);
  }
  std::pair<int64_t, int64_t> column(int64_t begin, int64_t index) const {
    return part(begin, std::min(num_columns() * piece_, call_.count - begin), num_columns(), index);
  }
  bool owns_column() const { return place_of(me_) < num_columns(); }

  void all_reduce() {
    const int64_t stride = num_columns() * piece_;
    const int64_t rounds = std::max<int64_t>((call_.count + stride - 1) / stride, 1);
    make_scratch((num_inside() - 1) * piece_ + (num_hosts() - 1) * ((piece_ + num_hosts() - 1) / num_hosts()));
    for (int64_t k = 0; k < rounds + 3; ++k) {
      CollectiveStage& s = stage();
      const auto is_round = [&](int64_t round) { return round >= 0 && round < rounds; };
      if (is_round(k - 3)) share_inside((k - 3) * stride, s);
      if (is_round(k - 2) && owns_column()) gather_between((k - 2) * stride, s);
      if (is_round(k - 1) && owns_column()) sum_between((k - 1) * stride, s);
      if (is_round(k)) sum_inside(k * stride, s);
    }
  }

  void sum_inside(int64_t begin, CollectiveStage& s) {
    for (int64_t c = 0; c < num_columns(); ++c) {
      const int owner = inside()[static_cast<size_t>(c)];
      const auto [from, count] = column(begin, c);
      if (owner != me_) send(s, owner, at(in_, from), count);
    }
    if (!owns_column()) return;
    const auto [from, count] = column(begin, place_of(me_));
    std::vector<const std::byte*> sources;
    int64_t slot = 0;
    for (int member : inside()) {
      if (member == me_) {
        sources.push_back(at(in_, from));
        continue;
      }
      std::byte* to = scratch(slot++ * piece_);
      receive(s, member, to, count);
      sources.push_back(to);
    }
    reduce(s, at(out_, from), std::move(sources), count);
  }

  /// What a host's owner of this column sums of it.
  std::pair<int64_t, int64_t> share(int64_t begin, size_t host) const {
    const auto [from, count] = column(begin, place_of(me_));
    return part(from, count, num_hosts(), static_cast<int64_t>(host));
  }
  int counterpart(size_t host) const { return hosts_[host][static_cast<size_t>(place_of(me_))]; }

  void sum_between(int64_t begin, CollectiveStage& s) {
    const auto [from, count] = share(begin, my_host());
    const int64_t first = (num_inside() - 1) * piece_;
    std::vector<const std::byte*> sources;
    int64_t slot = 0;
    for (size_t host = 0; host < hosts_.size(); ++host) {
      if (host == my_host()) {
        sources.push_back(at(out_, from));
        continue;
      }
      const auto [theirs, num_theirs] = share(begin, host);
      send(s, counterpart(host), at(out_, theirs), num_theirs);
      std::byte* to = scratch(first + slot++ * count);
      receive(s, counterpart(host), to, count);
      sources.push_back(to);
    }
    reduce(s, at(out_, from), std::move(sources), count);
  }

  void gather_between(int64_t begin, CollectiveStage& s) {
    const auto [mine, num_mine] = share(begin, my_host());
    for (size_t host = 0; host < hosts_.size(); ++host) {
      if (host == my_host()) continue;
      const auto [theirs, num_theirs] = share(begin, host);
      send(s, counterpart(host), at(out_, mine), num_mine);
      receive(s, counterpart(host), at(out_, theirs), num_theirs);
    }
  }

  void share_inside(int64_t begin, CollectiveStage& s) {
    for (int64_t c = 0; c < num_columns(); ++c) {
      const int owner = inside()[static_cast<size_t>(c)];
      const auto [from, count] = column(begin, c);
      if (owner != me_) {
        receive(s, owner, at(out_, from), count);
        continue;
      }
      for (int member : inside())
        if (member != me_) send(s, member, at(out_, from), count);
    }
  }

  // ---- reduce_scatter: the host's sum of each block goes to the block's rank ----

  std::vector<int> blocks_owned() const {
    std::vector<int> blocks;
    for (int member = 0; member < n_; ++member)
      if (owner_on(my_host(), member) == me_) blocks.push_back(member);
    return blocks;
  }

  void reduce_scatter() {
    const std::vector<int> owned = blocks_owned();
    const auto num_owned = static_cast<int64_t>(owned.size());
    make_scratch((num_owned * num_inside() + num_hosts() - 1) * std::min(piece_, std::max<int64_t>(call_.count, 1)));
    const int64_t rounds = std::max<int64_t>((call_.count + piece_ - 1) / piece_, 1);
    for (int64_t k = 0; k <= rounds; ++k) {
      CollectiveStage& s = stage();
      // Partial sums of a round are sent before those of the next take their place.
      if (k > 0) send_sums(owned, (k - 1) * piece_, s);
      if (k < rounds) sum_blocks(owned, k * piece_, s);
    }
  }
  int64_t elements_of(int64_t begin) const { return std::min(piece_, call_.count - begin); }
  std::byte* block_in(int member, int64_t begin) const { return at(in_, member * call_.count + begin); }
  int64_t slot_elements() const { return std::min(piece_, std::max<int64_t>(call_.count, 1)); }
  /// The host's sum of the i-th block that this rank owns; what comes in follows the sums.
  std::byte* sum_at(size_t i) const { return scratch(static_cast<int64_t>(i) * slot_elements()); }

  void sum_blocks(const std::vector<int>& owned, int64_t begin, CollectiveStage& s) {
    const int64_t count = elements_of(begin);
    for (int member = 0; member < n_; ++member)
      if (const int owner = owner_on(my_host(), member); owner != me_) send(s, owner, block_in(member, begin), count);
    size_t slot = owned.size() + hosts_.size() - 1;
    for (size_t i = 0; i < owned.size(); ++i) {
      std::vector<const std::byte*> sources;
      for (int member : inside()) {
        if (member != me_) receive(s, member, sum_at(slot), count);
        sources.push_back(member == me_ ? block_in(owned[i], begin) : sum_at(slot++));
      }
      reduce(s, sum_at(i), std::move(sources), count);
    }
  }

  void send_sums(const std::vector<int>& owned, int64_t begin, CollectiveStage& s) {
    const int64_t count = elements_of(begin);
    std::vector<const std::byte*> sources(hosts_.size());
    for (size_t i = 0; i < owned.size(); ++i) {
      if (owned[i] == me_)
        sources[my_host()] = sum_at(i);
      else
        send(s, owned[i], sum_at(i), count);
    }
    size_t slot = owned.size();
    for (size_t host = 0; host < hosts_.size(); ++host) {
      if (host == my_host()) continue;
      receive(s, owner_on(host, me_), sum_at(slot), count);
      sources[host] = sum_at(slot++);
    }
    reduce(s, at(out_, begin), std::move(sources), count);
  }

  // ---- all_gather: a block goes to one rank of each host ----

  void all_gather() {
    const auto block = [&](int member) { return at(out_, member * call_.count); };
    CollectiveStage& first = stage();
    for (size_t host = 0; host < hosts_.size(); ++host)
      if (host != my_host()) send(first, owner_on(host, me_), in_, call_.count);
    for (int member = 0; member < n_; ++member)
      if (host_of(member) != my_host() && owner_on(my_host(), member) == me_)
        receive(first, member, block(member), call_.count);
    for (int member : inside()) {
      if (member == me_) continue;
      send(first, member, in_, call_.count);
      receive(first, member, block(member), call_.count);
    }
    copy(first, block(me_), in_, call_.count);
    CollectiveStage& second = stage();
    for (int member = 0; member < n_; ++member) {
      if (host_of(member) == my_host()) continue;
      const int owner = owner_on(my_host(), member);
      if (owner != me_) receive(second, owner, block(member), call_.count);
      for (int peer : inside())
        if (owner == me_ && peer != me_) send(second, peer, block(member), call_.count);
    }
  }

  // ---- broadcast: the first of each host, the root on its own ----

  int leader(size_t host) const { return host == host_of(call_.root) ? call_.root : hosts_[host].front(); }

  CollectiveSchedule broadcast() const {
    const auto n = static_cast<int>(hosts_.size());
    const auto root = static_cast<int>(host_of(call_.root));
    const auto leader_at = [&](int place) { return leader(static_cast<size_t>((place + root) % n)); };
    TreePlace place;
    if (me_ != leader(my_host())) {
      place.parent = leader(my_host());
    } else {
      place = place_in_tree(n, (static_cast<int>(my_host()) - root + n) % n);
      if (place.parent >= 0) place.parent = leader_at(place.parent);
      for (int& child : place.children) child = leader_at(child);
      for (int member : inside())
        if (member != me_) place.children.push_back(member);
    }
    return broadcast_down(call_, group_, piece_bytes_, place);
  }

  const GroupPlace& group_;
  const int64_t piece_bytes_;
  std::vector<std::vector<int>> hosts_;  ///< members by host
  std::vector<int> place_;               ///< of each member among those of its host
};

}  // namespace

CollectiveSchedule two_level_schedule(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes) {
  return TwoLevelBuilder(call, group, piece_bytes).build();
}

}  // namespace altiplano
