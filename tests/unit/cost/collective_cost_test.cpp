#include "framework/cost/collective_cost.hpp"

#include <boost/test/unit_test.hpp>
#include <numeric>

#include "framework/cluster/presets.hpp"
#include "tests/support/about.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace altiplano {
static std::ostream& operator<<(std::ostream& out, CollectiveAlgorithm algorithm) {
  return out << to_string(algorithm);
}
}  // namespace altiplano

static constexpr CollectiveKind kAllKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                               CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                               CollectiveKind::kBroadcast,     CollectiveKind::kBarrier};

static GroupShape one_level(int n, double latency, double bandwidth) {
  return {n, {{0, n, latency, bandwidth, 1}}, true};
}
static Cluster cluster_of(std::vector<Level> levels) {
  Cluster cluster;
  cluster.levels = std::move(levels);
  return cluster;
}
static std::vector<int> first(int n, int stride = 1) {
  std::vector<int> devices(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) devices[static_cast<size_t>(i)] = i * stride;
  return devices;
}
static double seconds(CollectiveKind kind, CollectiveAlgorithm algorithm, int64_t bytes, const GroupShape& shape) {
  return algorithm_cost(kind, algorithm, Bytes(bytes), shape)->time.value;
}
BOOST_AUTO_TEST_CASE(prices_equal_the_values_computed_by_hand) {
  GroupShape four = one_level(4, 1e-6, 1e9), five = one_level(5, 1e-6, 1e9);
  using K = CollectiveKind;
  using A = CollectiveAlgorithm;
  // 4 ranks, 1 MB, 1 us, 1 GB/s: 1 MB takes 1000 us.
  BOOST_TEST(seconds(K::kAllReduce, A::kRing, 1'000'000, four) == 1506e-6, about());             // 6 + 2*3/4*1000
  BOOST_TEST(seconds(K::kAllReduce, A::kHalvingDoubling, 1'000'000, four) == 1504e-6, about());  // 4 + 1500
  BOOST_TEST(seconds(K::kAllReduce, A::kTree, 1'000'000, four) == 2004e-6, about());             // 4 + 2000
  BOOST_TEST(seconds(K::kAllGather, A::kRing, 1'000'000, four) == 753e-6, about());
  BOOST_TEST(seconds(K::kReduceScatter, A::kHalvingDoubling, 1'000'000, four) == 752e-6, about());
  BOOST_TEST(seconds(K::kAllToAll, A::kPairwise, 1'000'000, four) == 753e-6, about());
  BOOST_TEST(seconds(K::kBroadcast, A::kTree, 1'000'000, four) == 2002e-6, about());
  BOOST_TEST(seconds(K::kBroadcast, A::kRing, 1'000'000, four) == 1505e-6, about());
  BOOST_TEST(seconds(K::kBarrier, A::kTree, 1'000'000, four) == 2e-6, about());
  // 5 ranks: halving-doubling works on 4 and pays two whole tensors for the fifth.
  BOOST_TEST(seconds(K::kAllReduce, A::kHalvingDoubling, 1'000'000, five) == 3506e-6, about());
  BOOST_TEST(!algorithm_cost(K::kReduceScatter, A::kHalvingDoubling, Bytes(1), five).has_value());
  BOOST_TEST(!algorithm_cost(K::kAllReduce, A::kHierarchical, Bytes(1), five).has_value());
}

BOOST_AUTO_TEST_CASE(two_levels_price_as_reduce_scatter_rails_all_gather) {
  Cluster cluster = cluster_of({{"node", 2, 1e-6, 10e9, 1}, {"net", 2, 10e-6, 1e9, 1}});
  GroupShape shape = group_shape(cluster, first(4));
  // 1 MB: inside 1 + 50 us twice; across 500 kB by halving-doubling or ring: 20 + 500 us.
  CollectiveCost cost =
      *algorithm_cost(CollectiveKind::kAllReduce, CollectiveAlgorithm::kHierarchical, Bytes(1'000'000), shape);
  BOOST_TEST(cost.time.value == 622e-6, about());
  BOOST_TEST(cost.bytes_sent == 1'500'000.0);
  BOOST_TEST(to_string(collective_cost(CollectiveKind::kAllReduce, Bytes(1'000'000), shape).algorithm) ==
             std::string("hierarchical"));
}

BOOST_AUTO_TEST_CASE(the_choice_changes_with_the_size_of_the_message) {
  GroupShape six = one_level(6, 1e-6, 1e9);
  auto chosen = [&](int64_t bytes) {
    return std::string(to_string(collective_cost(CollectiveKind::kAllReduce, Bytes(bytes), six).algorithm));
  };
  BOOST_TEST(chosen(1'000) == "tree");       // 6 + 2 against ring 10 + 1.67
  BOOST_TEST(chosen(10'000'000) == "ring");  // 20000 against 16667
  BOOST_TEST(collective_cost(CollectiveKind::kBroadcast, Bytes(100), six).algorithm == CollectiveAlgorithm::kTree);
  BOOST_TEST(collective_cost(CollectiveKind::kBroadcast, Bytes(100'000'000), six).algorithm ==
             CollectiveAlgorithm::kRing);
}

BOOST_AUTO_TEST_CASE(an_oversubscribed_level_favours_algorithms_that_cross_it_with_few_messages) {
  Cluster flat = cluster_of({{"node", 4, 1e-6, 1e9, 1}, {"net", 2, 1e-6, 1e9, 1}});
  Cluster tapered = flat;
  tapered.levels[1].oversubscription = 4;
  std::vector<int> all = first(8);
  auto price = [&](const Cluster& c, CollectiveAlgorithm a) {
    return seconds(CollectiveKind::kAllReduce, a, 1 << 20, group_shape(c, all));
  };
  BOOST_TEST(price(tapered, CollectiveAlgorithm::kRing) == price(flat, CollectiveAlgorithm::kRing));
  BOOST_TEST(price(tapered, CollectiveAlgorithm::kHalvingDoubling) >
             3 * price(flat, CollectiveAlgorithm::kHalvingDoubling));
}

BOOST_AUTO_TEST_CASE(a_group_lies_on_the_levels_that_separate_its_members) {
  Cluster cluster = cluster_of({{"node", 4, 1e-6, 100e9, 1}, {"leaf", 4, 5e-6, 10e9, 1}, {"spine", 2, 9e-6, 10e9, 2}});
  auto fanouts = [&](std::vector<int> devices) {
    std::string text;
    for (const GroupLevel& level : group_shape(cluster, devices).levels)
      text += std::to_string(level.level) + "x" + std::to_string(level.fanout) + " ";
    return text;
  };
  BOOST_TEST(fanouts({3}) == "");
  BOOST_TEST(fanouts({0, 1, 2, 3}) == "0x4 ");
  BOOST_TEST(fanouts({12, 0, 4, 8}) == "1x4 ");    // one per node of a leaf, any order
  BOOST_TEST(fanouts(first(8, 4)) == "1x4 2x2 ");  // one per node everywhere
  BOOST_TEST(fanouts(first(32)) == "0x4 1x4 2x2 ");
  BOOST_TEST(fanouts({0, 16}) == "2x2 ");
  BOOST_TEST(fanouts({0, 1, 4}) == "1x3 ");  // uneven: flat on the outermost
  BOOST_TEST(!group_shape(cluster, std::vector<int>{0, 1, 4}).is_uniform);
}

// Where other numbers of ranks were measured, the price follows them in proportion, which may fall a little where the
// algorithms' own ratio does.
BOOST_AUTO_TEST_CASE(one_rank_pays_nothing_and_more_bytes_never_cost_less) {
  for (const auto& [preset, slack] : {std::pair{"dgx-h100", 1e-12}, {"p3.16xlarge", 0.02}}) {
    const Cluster cluster = load_cluster(preset)->resized(64);
    for (CollectiveKind kind : kAllKinds) {
      BOOST_TEST(collective_cost(kind, Bytes(1 << 30), cluster, first(1)).time.value == 0.0);
      for (int n : {2, 3, 5, 8, 16, 24, 64}) {
        double previous = 0;
        for (int64_t bytes = 1; bytes < (int64_t{1} << 34); bytes *= 3) {
          const double now = collective_cost(kind, Bytes(bytes), cluster, first(n)).time.value;
          BOOST_REQUIRE(now > 0);
          BOOST_REQUIRE_MESSAGE(now >= previous * (1 - slack), preset << ": " << to_string(kind) << " of " << n
                                                                      << " ranks, " << bytes << " B: " << now
                                                                      << " s, before " << previous);
          previous = now;
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_chosen_algorithm_is_never_dearer_than_another) {
  Cluster cluster = load_cluster("dgx-h100")->resized(32);
  for (CollectiveKind kind : kAllKinds)
    for (int n : {2, 3, 4, 6, 8, 16, 24, 32})
      for (int64_t bytes : {int64_t{64}, int64_t{100'000}, int64_t{1} << 28}) {
        GroupShape shape = group_shape(cluster, first(n));
        CollectiveCost best = collective_cost(kind, Bytes(bytes), shape);
        for (int a = 1; a <= static_cast<int>(CollectiveAlgorithm::kHierarchical); ++a) {
          auto other = algorithm_cost(kind, static_cast<CollectiveAlgorithm>(a), Bytes(bytes), shape);
          BOOST_REQUIRE(!other || other->time.value >= best.time.value);
        }
      }
}

BOOST_AUTO_TEST_CASE(only_allowed_algorithms_are_chosen) {
  GroupShape four = one_level(4, 1e-6, 1e9);
  std::vector<CollectiveAlgorithm> ring = {CollectiveAlgorithm::kRing};
  BOOST_TEST(collective_cost(CollectiveKind::kAllReduce, Bytes(8), four, ring).algorithm == CollectiveAlgorithm::kRing);
}

BOOST_AUTO_TEST_CASE(large_messages_reach_the_published_bus_bandwidth) {
  // all_reduce bus bandwidth = 2(n-1)/n S/t. DGX A100: 227-235 GB/s in the node, 192 GB/s between nodes (ml-engineering
  // book).
  auto bus = [](const Cluster& cluster) {
    int n = cluster.num_devices();
    double bytes = 4e9;
    return 2.0 * (n - 1) / n * bytes /
           collective_cost(CollectiveKind::kAllReduce, Bytes(4'000'000'000), cluster, first(n)).time.value;
  };
  BOOST_TEST(bus(*load_cluster("a100-40-8")) > 220e9);
  BOOST_TEST(bus(*load_cluster("a100-40-8")) < 235e9);
  double between = bus(load_cluster("a100-40-8")->resized(32));
  BOOST_TEST(between > 110e9);
  BOOST_TEST(between < 235e9);
}

BOOST_AUTO_TEST_CASE(a_message_costs_latency_and_bytes_of_the_slowest_level_between) {
  Cluster cluster = cluster_of({{"node", 2, 1e-6, 10e9, 1}, {"net", 2, 5e-6, 1e9, 2}});
  BOOST_TEST(transfer_cost(Bytes(1000), cluster, 1, 1).value == 0.0);
  BOOST_TEST(transfer_cost(Bytes(1'000'000), cluster, 0, 1).value == 101e-6, about());
  BOOST_TEST(transfer_cost(Bytes(1'000'000), cluster, 0, 2).value == 2005e-6, about());
}

BOOST_AUTO_TEST_CASE(bytes_by_level_are_all_the_bytes_that_the_chosen_algorithm_sends) {
  const Cluster cluster =
      cluster_of({{"node", 4, 1e-6, 1e11, 1}, {"leaf", 2, 1e-5, 1e10, 1}, {"spine", 3, 1e-5, 5e9, 2}});
  for (CollectiveKind kind : kAllKinds)
    for (const std::vector<int>& devices :
         {first(1), first(4), first(8), first(24), first(6, 4), first(5), first(12, 2)})
      for (int64_t bytes : {int64_t{1} << 10, int64_t{1} << 26}) {
        const GroupShape shape = group_shape(cluster, devices);
        const CollectiveCost cost = collective_cost(kind, Bytes(bytes), shape);
        double sum = 0;
        for (const auto& [level, sent] : bytes_by_level(kind, Bytes(bytes), shape)) {
          BOOST_TEST(sent >= 0);
          sum += sent;
        }
        BOOST_TEST(sum == cost.bytes_sent * shape.ranks, boost::test_tools::tolerance(1e-6));
      }
}

BOOST_AUTO_TEST_CASE(bytes_by_level_equal_the_values_computed_by_hand) {
  // Two nodes of four, 8 MiB: rails of 2 MiB between the nodes, three quarters of the tensor twice inside each.
  const Cluster cluster = cluster_of({{"node", 4, 1e-6, 1e12, 1}, {"network", 2, 1e-5, 1e9, 1}});
  const double mib = 1 << 20;
  auto sent = bytes_by_level(CollectiveKind::kAllReduce, Bytes(8 << 20), group_shape(cluster, first(8)));
  BOOST_TEST(sent[0] == 8 * 2 * 6 * mib, about());
  BOOST_TEST(sent[1] == 8 * 2 * mib, about());
  // Latencies alike, 5 x 5: one tree over all 25 with 24 edges, four of them between the groups of five.
  const Cluster even = cluster_of({{"node", 5, 1e-5, 1e12, 1}, {"network", 5, 1e-5, 1e12, 1}});
  const GroupShape flat = group_shape(even, first(25));
  BOOST_TEST(collective_cost(CollectiveKind::kAllReduce, Bytes(24), flat).algorithm == CollectiveAlgorithm::kTree);
  sent = bytes_by_level(CollectiveKind::kAllReduce, Bytes(24), flat);
  BOOST_TEST(sent[0] == 25 * 2 * 20, about());
  BOOST_TEST(sent[1] == 25 * 2 * 4, about());
}

static Cluster measured_node() {
  Cluster cluster = cluster_of({{"node", 4, 1e-6, 1e9, 1}, {"network", 2, 10e-6, 1e8, 1}});
  LevelCurves curves;
  curves.measured = {{CollectiveKind::kAllReduce, 2, {{1e3, 5e-6}, {1e6, 5e-3}}}, {std::nullopt, 2, {{1e3, 3e-6}}}};
  cluster.levels[0].curves = std::make_shared<const LevelCurves>(curves);
  return cluster;
}

BOOST_AUTO_TEST_CASE(what_was_measured_on_a_level_is_what_calls_within_it_take) {
  const Cluster cluster = measured_node();
  const auto all_reduce = [&](int64_t bytes, int ranks) {
    return collective_cost(CollectiveKind::kAllReduce, Bytes(bytes), cluster, first(ranks)).time.value;
  };
  BOOST_TEST(all_reduce(10, 2) == 5e-6, about());
  BOOST_TEST(all_reduce(1'000'000, 2) == 5e-3, about());
  BOOST_TEST(all_reduce(2'000'000, 2) == 10e-3, about());
  // Of other numbers of ranks in proportion to the algorithms' prices.
  const auto priced = [&](int ranks) {
    return collective_cost(CollectiveKind::kAllReduce, Bytes(1'000'000), one_level(ranks, 1e-6, 1e9)).time.value;
  };
  BOOST_TEST(all_reduce(1'000'000, 4) == 5e-3 * priced(4) / priced(2), about());
  // Kinds that were not measured, and groups beyond the level, by latency and bandwidth; its phases within as measured.
  BOOST_TEST(collective_cost(CollectiveKind::kAllGather, Bytes(1'000'000), cluster, first(2)).time.value == 501e-6,
             about());
  BOOST_TEST(collective_cost(CollectiveKind::kAllReduce, Bytes(1'000'000), cluster, first(2, 4)).time.value ==
                 2 * 10e-6 + 1'000'000 / 1e8,
             about());
  BOOST_TEST(transfer_cost(Bytes(2000), cluster, 0, 1).value == 6e-6, about());
  BOOST_TEST(transfer_cost(Bytes(1'000'000), cluster, 0, 4).value == 10e-6 + 1e-2, about());
}

BOOST_AUTO_TEST_CASE(a_level_may_say_its_bandwidth_by_size) {
  Cluster cluster = cluster_of({{"node", 2, 1e-6, 1e9, 1}});
  LevelCurves curves;
  curves.bandwidth = {{1e3, 1e8}, {1e6, 1e10}};
  cluster.levels[0].curves = std::make_shared<const LevelCurves>(curves);
  BOOST_TEST(transfer_cost(Bytes(1000), cluster, 0, 1).value == 11e-6, about());
  BOOST_TEST(transfer_cost(Bytes(1'000'000), cluster, 0, 1).value == 101e-6, about());
  const auto cost = collective_cost(CollectiveKind::kAllGather, Bytes(1'000'000), cluster, first(2));
  BOOST_TEST(cost.time.value == 1e-6 + 0.5e-4, about());
}
