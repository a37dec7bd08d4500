#include "framework/search/placement.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace altiplano {
namespace {

constexpr double kNoise = 1 - 1e-9;  // sums of the same bytes in another order are no gain

/// Numbers, from 0 on, that occur in `groups` for the given ranks, without repetition.
int num_distinct(std::vector<int>& scratch) {
  std::ranges::sort(scratch);
  return static_cast<int>(std::unique(scratch.begin(), scratch.end()) - scratch.begin());
}

/// Slots on hosts, some not yet placed: which rank of its host a slot takes makes no difference.
class HostSearch {
 public:
  HostSearch(const RankPlaces& places, const std::vector<SlotExchange>& exchanges)
      : places_(places), exchanges_(exchanges), num_slots_(places.num_ranks()) {
    const auto hosts = static_cast<size_t>(places.num_groups(0));
    ranks_of_.resize(hosts);
    for (int rank = 0; rank < num_slots_; ++rank)
      ranks_of_[static_cast<size_t>(places.group_of(0, rank))].push_back(rank);
    touching_.resize(static_cast<size_t>(num_slots_));
    for (size_t e = 0; e < exchanges.size(); ++e)
      for (int slot : exchanges[e].slots) touching_[static_cast<size_t>(slot)].push_back(e);
    used_.resize(hosts, 0);
    for (int level = 0; level < places.num_levels(); ++level) {
      forms_.emplace_back();
      for (int host = 0; host < static_cast<int>(hosts); ++host) forms_.back().push_back(form_of(level, host));
    }
  }

  using Hosts = std::vector<int>;  ///< by slot; -1: not placed

  /// Slot s on rank s.
  Hosts in_order() const { return places_.groups.front(); }

  /// Slots in order over the hosts as the network's tree has them.
  Hosts along_tree() const {
    std::vector<int> ranks(static_cast<size_t>(num_slots_));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::ranges::stable_sort(ranks, [&](int a, int b) {
      for (int level = places_.num_levels() - 1; level >= 0; --level)
        if (places_.group_of(level, a) != places_.group_of(level, b))
          return places_.group_of(level, a) < places_.group_of(level, b);
      return false;
    });
    Hosts hosts;
    for (int rank : ranks) hosts.push_back(places_.group_of(0, rank));
    return hosts;
  }

  double cost(const Hosts& hosts) const {
    double sum = 0;
    for (size_t e = 0; e < exchanges_.size(); ++e) sum += cost_of(e, hosts);
    return sum;
  }

  /// Exchanges two slots where that helps, until none does or the looks are used up.
  void improve(Hosts& hosts, int64_t& looks) const {
    for (bool moved = true; moved && looks > 0;) {
      moved = false;
      for (int a = 0; a < num_slots_; ++a)
        for (int b = a + 1; b < num_slots_ && looks > 0; ++b) moved = swap_if_better(hosts, a, b, looks) || moved;
    }
  }

  /// True when it has looked through all: `best` cannot be bettered.
  bool look_through(Hosts& best, int64_t& looks) {
    Hosts hosts(static_cast<size_t>(num_slots_), -1);
    double least = cost(best);
    return place_from(0, 0, hosts, best, least, looks);
  }

  Binding binding_of(const Hosts& hosts) const {
    Binding binding;
    std::vector<size_t> taken(ranks_of_.size(), 0);
    for (int host : hosts)
      binding.rank_of_slot.emplace_back(ranks_of_[static_cast<size_t>(host)][taken[static_cast<size_t>(host)]++]);
    return binding;
  }

 private:
  int group_at(int level, int host) const {
    return places_.group_of(level, ranks_of_[static_cast<size_t>(host)].front());
  }

  /// Hop-bytes of one exchange, of those of its slots that are placed: with more of them it is never less.
  double cost_of(size_t exchange, const Hosts& hosts) const {
    const SlotExchange& what = exchanges_[exchange];
    double cuts = 0;
    for (int level = 0; level < places_.num_levels(); ++level) {
      scratch_.clear();
      for (int slot : what.slots)
        if (const int host = hosts[static_cast<size_t>(slot)]; host >= 0) scratch_.push_back(group_at(level, host));
      const int parts = num_distinct(scratch_);
      if (parts < 2) break;
      cuts += parts - 1;
    }
    return 2 * cuts * what.bytes;
  }

  double cost_of_slots(int a, int b, const Hosts& hosts) const {
    double sum = 0;
    for (size_t e : touching_[static_cast<size_t>(a)]) sum += cost_of(e, hosts);
    for (size_t e : touching_[static_cast<size_t>(b)]) sum += cost_of(e, hosts);
    return sum;
  }

  bool swap_if_better(Hosts& hosts, int a, int b, int64_t& looks) const {
    int &of_a = hosts[static_cast<size_t>(a)], &of_b = hosts[static_cast<size_t>(b)];
    if (of_a == of_b) return false;
    --looks;
    // What holds both slots is counted twice before and after, and does not change.
    const double before = cost_of_slots(a, b, hosts);
    std::swap(of_a, of_b);
    if (cost_of_slots(a, b, hosts) < before * kNoise) return true;
    std::swap(of_a, of_b);
    return false;
  }

  /// Whether an empty group of some level stands before the host's own that is like it in all that matters.
  bool has_mirror(int host) const {
    for (int other = 0; other < host; ++other)
      for (int level = 0; level < places_.num_levels(); ++level)
        if (group_at(level, other) != group_at(level, host) && share_parent(level, other, host) &&
            are_empty_and_alike(level, other, host))
          return true;
    return false;
  }

  bool share_parent(int level, int a, int b) const {
    return level + 1 == places_.num_levels() || group_at(level + 1, a) == group_at(level + 1, b);
  }

  bool are_empty_and_alike(int level, int a, int b) const {
    const auto& forms = forms_[static_cast<size_t>(level)];
    return forms[static_cast<size_t>(a)] == forms[static_cast<size_t>(b)] && is_empty(level, a) && is_empty(level, b);
  }

  bool is_empty(int level, int host) const {
    for (size_t h = 0; h < used_.size(); ++h)
      if (used_[h] > 0 && group_at(level, static_cast<int>(h)) == group_at(level, host)) return false;
    return true;
  }

  /// The tree below a host's group as nested text, children sorted: equal for trees of one form.
  std::string form_of(int level, int host) const {
    if (level == 0) return std::to_string(ranks_of_[static_cast<size_t>(host)].size());
    std::vector<std::string> children;
    std::vector<int> seen;
    for (int h = 0; h < static_cast<int>(used_.size()); ++h) {
      const int child = group_at(level - 1, h);
      if (group_at(level, h) != group_at(level, host) || std::ranges::find(seen, child) != seen.end()) continue;
      seen.push_back(child);
      children.push_back(form_of(level - 1, h));
    }
    std::ranges::sort(children);
    std::string text = "(";
    for (const std::string& child : children) text += child + ",";
    return text + ")";
  }

  bool place_from(int slot, double cost, Hosts& hosts, Hosts& best, double& least, int64_t& looks) {
    if (slot == num_slots_) {
      best = hosts;
      least = cost;
      return true;
    }
    bool is_whole = true;
    for (int host = 0; host < static_cast<int>(used_.size()); ++host) {
      int& used = used_[static_cast<size_t>(host)];
      if (used == static_cast<int>(ranks_of_[static_cast<size_t>(host)].size()) || has_mirror(host)) continue;
      if (--looks < 0) return false;
      hosts[static_cast<size_t>(slot)] = host;
      const double with = cost + added_by(slot, hosts);
      ++used;
      if (with < least * kNoise) is_whole = place_from(slot + 1, with, hosts, best, least, looks) && is_whole;
      --used;
      hosts[static_cast<size_t>(slot)] = -1;
    }
    return is_whole;
  }

  double added_by(int slot, Hosts& hosts) const {
    int& host = hosts[static_cast<size_t>(slot)];
    double with = 0, without = 0;
    for (size_t e : touching_[static_cast<size_t>(slot)]) with += cost_of(e, hosts);
    const int kept = std::exchange(host, -1);
    for (size_t e : touching_[static_cast<size_t>(slot)]) without += cost_of(e, hosts);
    host = kept;
    return with - without;
  }

  const RankPlaces& places_;
  const std::vector<SlotExchange>& exchanges_;
  const int num_slots_;
  std::vector<std::vector<int>> ranks_of_;       ///< by host
  std::vector<std::vector<size_t>> touching_;    ///< exchanges by slot
  std::vector<std::vector<std::string>> forms_;  ///< of the trees below, by level and host
  std::vector<int> used_;                        ///< ranks of each host that have a slot
  mutable std::vector<int> scratch_;
};

}  // namespace

double PlacementScore::between(int level) const {
  double sum = 0;
  for (size_t l = static_cast<size_t>(level) + 1; l < bytes.size(); ++l) sum += bytes[l];
  return sum;
}

PlacementScore score_placement(const RankPlaces& places, const std::vector<SlotExchange>& exchanges,
                               const Binding& binding) {
  PlacementScore score;
  score.bytes.resize(static_cast<size_t>(places.num_levels()) + 1, 0);
  for (const SlotExchange& exchange : exchanges) {
    for (int level = 0; level < places.num_levels(); ++level) {
      std::vector<int> groups;
      for (int slot : exchange.slots)
        groups.push_back(places.group_of(level, binding.rank_of_slot[static_cast<size_t>(slot)].value));
      const double crossing = exchange.bytes * (num_distinct(groups) - 1);
      score.bytes[static_cast<size_t>(level) + 1] += crossing;
      if (level > 0) score.bytes[static_cast<size_t>(level)] -= crossing;
      score.hop_bytes += 2 * crossing;
    }
  }
  return score;
}

Placement find_placement(const RankPlaces& places, const std::vector<SlotExchange>& exchanges, int64_t most_looks) {
  HostSearch search(places, exchanges);
  HostSearch::Hosts best = search.in_order();
  int64_t looks = most_looks;
  for (HostSearch::Hosts start : {best, search.along_tree()}) {
    search.improve(start, looks);
    if (search.cost(start) < search.cost(best) * kNoise) best = std::move(start);
  }
  Placement placement;
  placement.is_proved = search.look_through(best, looks);
  const Binding in_order = Binding::identity(places.num_ranks());
  placement.binding = best == search.in_order() ? in_order : search.binding_of(best);
  placement.in_order = score_placement(places, exchanges, in_order);
  placement.score = score_placement(places, exchanges, placement.binding);
  return placement;
}

}  // namespace altiplano
