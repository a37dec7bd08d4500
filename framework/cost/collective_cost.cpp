#include "framework/cost/collective_cost.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "framework/cost/curve.hpp"

namespace altiplano {
namespace {

/// Latency and seconds per byte a flat algorithm sees, and the ranks it runs over.
struct Links {
  int n = 1;
  double alpha = 0;
  double beta_ring = 0;  ///< when one member of each lower group sends upwards at a time
  double beta_all = 0;   ///< when every member sends upwards at once
};

/// What one device gets of a level for tensors of `bytes`.
double bandwidth_at(double bandwidth, const LevelCurves* curves, double bytes) {
  if (curves == nullptr || curves->bandwidth.empty() || bytes <= 0) return bandwidth;
  return bytes / seconds_by_rate(curves->bandwidth, bytes);
}

/// A ring crosses each group's border once, so oversubscription hurts it only beyond the members that would share the
/// border anyway.
Links flat_links(const GroupShape& shape, double bytes) {
  Links links{shape.ranks, 0, 0, 0};
  int members_below = 1;
  for (const GroupLevel& level : shape.levels) {
    const double bandwidth = bandwidth_at(level.bandwidth, level.curves.get(), bytes);
    double ring_share = std::max(1.0, level.oversubscription / members_below);
    links.alpha = std::max(links.alpha, level.latency);
    links.beta_ring = std::max(links.beta_ring, ring_share / bandwidth);
    links.beta_all = std::max(links.beta_all, level.oversubscription / bandwidth);
    members_below *= level.fanout;
  }
  return links;
}

double ceil_log2(int n) {
  return n <= 1 ? 0 : static_cast<double>(std::bit_width(static_cast<unsigned>(n - 1)));
}
bool is_power_of_two(int n) {
  return std::has_single_bit(static_cast<unsigned>(n));
}

using Price = std::optional<CollectiveCost>;

CollectiveCost price(CollectiveAlgorithm algorithm, double messages, double bytes, double alpha, double beta) {
  return {algorithm, Seconds(messages * alpha + bytes * beta), bytes};
}

Price ring(CollectiveKind kind, double s, const Links& l) {
  double steps = l.n - 1, part = steps / l.n * s;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return price(CollectiveAlgorithm::kRing, 2 * steps, 2 * part, l.alpha, l.beta_ring);
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
      return price(CollectiveAlgorithm::kRing, steps, part, l.alpha, l.beta_ring);
    case CollectiveKind::kBroadcast:
      return price(CollectiveAlgorithm::kRing, ceil_log2(l.n) + steps, 2 * part, l.alpha, l.beta_ring);
    default:
      return std::nullopt;
  }
}

Price halving_doubling(CollectiveKind kind, double s, const Links& l) {
  int p = static_cast<int>(std::bit_floor(static_cast<unsigned>(l.n)));
  double part = (p - 1.0) / p * s;
  bool even = is_power_of_two(l.n);
  if (kind == CollectiveKind::kAllReduce)  // the ranks beyond the power of two hand their tensor over first and get the
                                           // sum back
    return price(CollectiveAlgorithm::kHalvingDoubling, 2 * ceil_log2(l.n), 2 * part + (even ? 0 : 2 * s), l.alpha,
                 l.beta_all);
  if ((kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllGather) && even)
    return price(CollectiveAlgorithm::kHalvingDoubling, ceil_log2(l.n), part, l.alpha, l.beta_all);
  return std::nullopt;
}

Price tree(CollectiveKind kind, double s, const Links& l) {
  double depth = ceil_log2(l.n);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return price(CollectiveAlgorithm::kTree, 2 * depth, 2 * s, l.alpha, l.beta_all);
    case CollectiveKind::kBroadcast:
      return price(CollectiveAlgorithm::kTree, depth, depth * s, l.alpha, l.beta_all);
    case CollectiveKind::kBarrier:
      return price(CollectiveAlgorithm::kTree, depth, 0, l.alpha, l.beta_all);
    default:
      return std::nullopt;
  }
}

Price pairwise(CollectiveKind kind, double s, const Links& l) {
  if (kind != CollectiveKind::kAllToAll) return std::nullopt;
  return price(CollectiveAlgorithm::kPairwise, l.n - 1, (l.n - 1.0) / l.n * s, l.alpha, l.beta_all);
}

GroupShape without_innermost(const GroupShape& shape) {
  return {shape.ranks / shape.levels[0].fanout, {shape.levels.begin() + 1, shape.levels.end()}, true};
}
GroupShape only_innermost(const GroupShape& shape) {
  return {shape.levels[0].fanout, {shape.levels[0]}, true};
}

Bytes whole_bytes(double bytes) {
  return Bytes(static_cast<int64_t>(bytes + 0.5));
}

/// One phase of a two-level collective, done by `count` groups side by side.
struct CollectivePhase {
  CollectiveKind kind;
  Bytes bytes;
  GroupShape shape;
  int count;
};

/// Inside the innermost level, across the rest, inside again.
std::vector<CollectivePhase> phases_of(CollectiveKind kind, Bytes bytes, const GroupShape& shape) {
  const GroupShape inner = only_innermost(shape), outer = without_innermost(shape);
  const Bytes rail = whole_bytes(static_cast<double>(bytes.value) / inner.ranks);
  const int groups = outer.ranks, rails = inner.ranks;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return {{CollectiveKind::kReduceScatter, bytes, inner, groups},
              {kind, rail, outer, rails},
              {CollectiveKind::kAllGather, bytes, inner, groups}};
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
      return {{kind, bytes, inner, groups}, {kind, rail, outer, rails}};
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kBarrier:
      break;
  }
  return {{kind, bytes, inner, groups}, {kind, bytes, outer, rails}};
}

Price hierarchical(CollectiveKind kind, Bytes bytes, const GroupShape& shape) {
  if (!shape.is_uniform || shape.levels.size() < 2) return std::nullopt;
  CollectiveCost total{CollectiveAlgorithm::kHierarchical, Seconds(0), 0};
  for (const CollectivePhase& phase : phases_of(kind, bytes, shape)) {
    const CollectiveCost cost = collective_cost(phase.kind, phase.bytes, phase.shape);
    total.time += cost.time;
    total.bytes_sent += cost.bytes_sent;
  }
  return total;
}

/// The part of a flat algorithm's bytes that level `at` carries; `below` members of the group are in one group under
/// it.
double share_of_level(CollectiveAlgorithm algorithm, const GroupShape& shape, size_t at, int below) {
  const double n = shape.ranks, fanout = shape.levels[at].fanout;
  const double edges = n / (below * fanout) * (fanout - 1);
  switch (algorithm) {
    case CollectiveAlgorithm::kRing:
      return (edges + (at + 1 == shape.levels.size() ? 1 : 0)) / n;
    case CollectiveAlgorithm::kHalvingDoubling:
      return (1 - 1 / fanout) / below / (1 - 1 / n);
    case CollectiveAlgorithm::kTree:
      return edges / (n - 1);
    case CollectiveAlgorithm::kPairwise:
      return (fanout - 1) * below / (n - 1);
    case CollectiveAlgorithm::kNone:
    case CollectiveAlgorithm::kHierarchical:
      break;
  }
  return 0;
}

constexpr CollectiveAlgorithm kAllAlgorithms[] = {CollectiveAlgorithm::kRing, CollectiveAlgorithm::kHalvingDoubling,
                                                  CollectiveAlgorithm::kTree, CollectiveAlgorithm::kPairwise,
                                                  CollectiveAlgorithm::kHierarchical};

GroupLevel group_level(const Cluster& cluster, int level, int fanout) {
  const Level& l = cluster.levels[static_cast<size_t>(level)];
  return {level, fanout, l.latency, l.bandwidth, l.oversubscription, l.curves};
}

/// Members per group of `group_size` devices; 0 when groups hold different numbers.
int members_per_group(std::span<const int> devices, int group_size) {
  std::map<int, int> counts;
  for (int device : devices) ++counts[device / group_size];
  int members = counts.begin()->second;
  for (const auto& [group, count] : counts)
    if (count != members) return 0;
  return members;
}

}  // namespace

const char* to_string(CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::kNone:
      return "none";
    case CollectiveAlgorithm::kRing:
      return "ring";
    case CollectiveAlgorithm::kHalvingDoubling:
      return "halving_doubling";
    case CollectiveAlgorithm::kTree:
      return "tree";
    case CollectiveAlgorithm::kPairwise:
      return "pairwise";
    case CollectiveAlgorithm::kHierarchical:
      return "hierarchical";
  }
  return "?";
}

GroupShape group_shape(const Cluster& cluster, std::span<const int> devices) {
  ALTIPLANO_ASSERT(!devices.empty(), "a group without devices");
  GroupShape shape;
  shape.ranks = static_cast<int>(devices.size());
  int outermost = -1;
  for (int device : devices) outermost = std::max(outermost, cluster.connecting_level(devices[0], device));
  int below = 1;
  for (int level = 0; level <= outermost; ++level) {
    int members = level == outermost ? shape.ranks : members_per_group(devices, cluster.devices_in_level(level));
    if (members == 0) {
      shape.is_uniform = false;
      shape.levels = {group_level(cluster, outermost, shape.ranks)};
      return shape;
    }
    if (members > below) shape.levels.push_back(group_level(cluster, level, members / below));
    below = members;
  }
  return shape;
}

std::optional<CollectiveCost> algorithm_cost(CollectiveKind kind, CollectiveAlgorithm algorithm, Bytes bytes,
                                             const GroupShape& shape) {
  if (shape.ranks <= 1) return algorithm == CollectiveAlgorithm::kNone ? Price(CollectiveCost{}) : std::nullopt;
  double s = static_cast<double>(bytes.value);
  switch (algorithm) {
    case CollectiveAlgorithm::kNone:
      return std::nullopt;
    case CollectiveAlgorithm::kRing:
      return ring(kind, s, flat_links(shape, s));
    case CollectiveAlgorithm::kHalvingDoubling:
      return halving_doubling(kind, s, flat_links(shape, s));
    case CollectiveAlgorithm::kTree:
      return tree(kind, s, flat_links(shape, s));
    case CollectiveAlgorithm::kPairwise:
      return pairwise(kind, s, flat_links(shape, s));
    case CollectiveAlgorithm::kHierarchical:
      return hierarchical(kind, bytes, shape);
  }
  return std::nullopt;
}

namespace {

CollectiveCost cheapest(CollectiveKind kind, Bytes bytes, const GroupShape& shape,
                        std::span<const CollectiveAlgorithm> allowed) {
  std::span<const CollectiveAlgorithm> candidates =
      allowed.empty() ? std::span<const CollectiveAlgorithm>(kAllAlgorithms) : allowed;
  Price best;
  for (CollectiveAlgorithm algorithm : candidates) {
    Price cost = algorithm_cost(kind, algorithm, bytes, shape);
    if (cost && (!best || cost->time < best->time || (cost->time == best->time && cost->algorithm < best->algorithm)))
      best = cost;
  }
  ALTIPLANO_ASSERT(best.has_value(), "no allowed algorithm serves {} of {} ranks", to_string(kind), shape.ranks);
  return *best;
}

/// The curve of this kind whose number of ranks is nearest by ratio, the smaller one among equals; null for none.
const ExchangeCurve* nearest_curve(const LevelCurves& curves, std::optional<CollectiveKind> kind, int ranks) {
  const ExchangeCurve* nearest = nullptr;
  const auto distance = [&](const ExchangeCurve& curve) {
    return std::abs(std::log(static_cast<double>(curve.ranks) / ranks));
  };
  for (const ExchangeCurve& curve : curves.measured)
    if (curve.kind == kind && (!nearest || distance(curve) < distance(*nearest))) nearest = &curve;
  return nearest;
}

/// By what was measured on the one level where the ranks meet.
std::optional<Seconds> measured_time(CollectiveKind kind, Bytes bytes, const GroupShape& shape) {
  if (shape.levels.size() != 1 || !shape.levels[0].curves) return std::nullopt;
  const ExchangeCurve* curve = nearest_curve(*shape.levels[0].curves, kind, shape.ranks);
  if (!curve) return std::nullopt;
  const Seconds measured(seconds_by_time(curve->points, static_cast<double>(bytes.value)));
  if (curve->ranks == shape.ranks) return measured;
  GroupShape of_curve = shape;
  of_curve.ranks = of_curve.levels[0].fanout = curve->ranks;
  const double known = cheapest(kind, bytes, of_curve, {}).time.value;
  return known > 0 ? measured * (cheapest(kind, bytes, shape, {}).time.value / known) : measured;
}

}  // namespace

CollectiveCost collective_cost(CollectiveKind kind, Bytes bytes, const GroupShape& shape,
                               std::span<const CollectiveAlgorithm> allowed) {
  if (shape.ranks <= 1) return {};
  CollectiveCost cost = cheapest(kind, bytes, shape, allowed);
  if (allowed.empty())
    if (const auto measured = measured_time(kind, bytes, shape)) cost.time = *measured;
  return cost;
}

CollectiveCost collective_cost(CollectiveKind kind, Bytes bytes, const Cluster& cluster, std::span<const int> devices) {
  return collective_cost(kind, bytes, group_shape(cluster, devices));
}

std::map<int, double> bytes_by_level(CollectiveKind kind, Bytes bytes, const GroupShape& shape) {
  std::map<int, double> sent;
  const CollectiveCost cost = collective_cost(kind, bytes, shape);
  if (cost.algorithm == CollectiveAlgorithm::kHierarchical) {
    for (const CollectivePhase& phase : phases_of(kind, bytes, shape))
      for (const auto& [level, of_phase] : bytes_by_level(phase.kind, phase.bytes, phase.shape))
        sent[level] += of_phase * phase.count;
    return sent;
  }
  int below = 1;
  for (size_t i = 0; i < shape.levels.size() && cost.bytes_sent > 0; ++i) {
    sent[shape.levels[i].level] = cost.bytes_sent * shape.ranks * share_of_level(cost.algorithm, shape, i, below);
    below *= shape.levels[i].fanout;
  }
  return sent;
}

Seconds transfer_cost(Bytes bytes, const Cluster& cluster, int a, int b) {
  int connecting = cluster.connecting_level(a, b);
  if (connecting < 0) return Seconds(0);
  const auto& curves = cluster.levels[static_cast<size_t>(connecting)].curves;
  const ExchangeCurve* measured = curves ? nearest_curve(*curves, std::nullopt, 2) : nullptr;
  if (measured) return Seconds(seconds_by_time(measured->points, static_cast<double>(bytes.value)));
  double alpha = 0, beta = 0;
  for (int i = 0; i <= connecting; ++i) {
    const Level& level = cluster.levels[static_cast<size_t>(i)];
    if (level.fanout == 1 && i < connecting) continue;  // nothing is joined there
    alpha = std::max(alpha, level.latency);
    const double bandwidth = bandwidth_at(level.bandwidth, level.curves.get(), static_cast<double>(bytes.value));
    beta = std::max(beta, level.oversubscription / bandwidth);
  }
  return Seconds(alpha + static_cast<double>(bytes.value) * beta);
}

}  // namespace altiplano
