#include "framework/api/collectives/algorithm_choice.hpp"

#include <algorithm>

namespace altiplano {
namespace {

using enum CollectiveSteps;

constexpr int kMostDirect = 8;                           // ranks among whom all pairs exchange
constexpr int64_t kSmallTwoLevel = 1 << 10;              // bytes up to which one step between all beats three
constexpr int64_t kLargestDoubling = int64_t{32} << 10;  // bytes: beyond it, halves save more than stages cost
constexpr int64_t kLeastRingBlock = int64_t{64} << 10;   // bytes of a step around a ring that hide its latency

bool has_ring(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kAllGather;
}

AlgorithmChoice wanted_choice(CollectiveKind kind, int64_t bytes, MessageAlgorithm wanted) {
  if (wanted == MessageAlgorithm::kRing && has_ring(kind)) return {kRing, "as asked"};
  if (wanted == MessageAlgorithm::kRecursive && kind == CollectiveKind::kAllReduce)
    return {bytes <= kLargestDoubling ? kDoubling : kHalving, "as asked"};
  if (wanted == MessageAlgorithm::kDirect) return {kDirect, "as asked"};
  return {kDirect, fmt::format("there is no other for {}", to_string(kind))};
}

AlgorithmChoice flat_choice(CollectiveKind kind, int64_t bytes, int n) {
  if (n <= kMostDirect) return {kDirect, fmt::format("{} ranks: all pairs exchange, {} at most", n, kMostDirect)};
  const int64_t block = kind == CollectiveKind::kAllReduce ? bytes / n : bytes;
  if (block >= kLeastRingBlock)
    return {kRing, fmt::format("{} ranks, {} B a step: each talks to its neighbours only", n, block)};
  if (kind != CollectiveKind::kAllReduce) return {kDirect, fmt::format("{} ranks, only {} B each", n, block)};
  if (bytes <= kLargestDoubling) return {kDoubling, fmt::format("{} ranks, {} B: fewest stages", n, bytes)};
  return {kHalving, fmt::format("{} ranks, {} B: too few for a ring", n, bytes)};
}

}  // namespace

const char* to_string(CollectiveSteps steps) {
  constexpr const char* kNames[] = {"direct",    "ring", "recursive doubling", "recursive halving",
                                    "two-level", "tree", "dissemination"};
  return kNames[static_cast<size_t>(steps)];
}

int num_hosts_of(const GroupPlace& group) {
  return group.host_of.empty() ? 1 : 1 + *std::max_element(group.host_of.begin(), group.host_of.end());
}

AlgorithmChoice choose_algorithm(CollectiveKind kind, int64_t bytes, const GroupPlace& group, MessageAlgorithm wanted,
                                 bool two_level) {
  if (kind == CollectiveKind::kBarrier) return {kDissemination, "a barrier"};
  if (kind == CollectiveKind::kAllToAll) return {kDirect, "all pairs have something for each other"};
  const int hosts = num_hosts_of(group);
  const bool is_spread = hosts > 1 && hosts < group.num_ranks;
  if (two_level && is_spread && wanted == MessageAlgorithm::kAuto &&
      (bytes > kSmallTwoLevel || kind == CollectiveKind::kBroadcast))
    return {kTwoLevel, fmt::format("{} ranks on {} hosts: each byte between two of them once", group.num_ranks, hosts)};
  if (kind == CollectiveKind::kBroadcast) return {kTree, "a broadcast"};
  return wanted == MessageAlgorithm::kAuto ? flat_choice(kind, bytes, group.num_ranks)
                                           : wanted_choice(kind, bytes, wanted);
}

}  // namespace altiplano
