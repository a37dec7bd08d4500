#include "framework/search/placement.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <numeric>
#include <random>

using namespace altiplano;

namespace {

RankPlaces places_of(const std::vector<std::string>& hosts, const std::vector<std::string>& switches) {
  std::vector<NetworkAddress> addresses;
  for (size_t i = 0; i < hosts.size(); ++i) addresses.push_back({switches[i], hosts[i]});
  return RankPlaces::from_addresses(addresses);
}

Binding binding_to(const std::vector<int>& ranks) {
  Binding binding;
  for (int rank : ranks) binding.rank_of_slot.emplace_back(rank);
  return binding;
}

bool is_permutation_of_ranks(const Binding& binding) {
  std::vector<int> ranks;
  for (RankId rank : binding.rank_of_slot) ranks.push_back(rank.value);
  std::ranges::sort(ranks);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != static_cast<int>(i)) return false;
  return true;
}

double least_of_all_orders(const RankPlaces& places, const std::vector<SlotExchange>& exchanges) {
  std::vector<int> ranks(static_cast<size_t>(places.num_ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  double least = std::numeric_limits<double>::max();
  do least = std::min(least, score_placement(places, exchanges, binding_to(ranks)).hop_bytes);
  while (std::ranges::next_permutation(ranks).found);
  return least;
}

struct RandomPlacement {
  RankPlaces places;
  std::vector<SlotExchange> exchanges;
};

RandomPlacement random_placement(std::mt19937_64& random, int ranks) {
  RandomPlacement made;
  std::vector<NetworkAddress> addresses;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto host = random() % 4;
    addresses.push_back({"s" + std::to_string(host % 2), "h" + std::to_string(host)});
  }
  made.places = RankPlaces::from_addresses(addresses);
  for (uint64_t e = 0, n = 1 + random() % 8; e < n; ++e) {
    std::vector<int> slots;
    for (int slot = 0; slot < ranks; ++slot)
      if (random() % 3 == 0) slots.push_back(slot);
    if (slots.size() > 1) made.exchanges.push_back({slots, static_cast<double>(1 + random() % 9)});
  }
  return made;
}

}  // namespace

// Field case M10: nodes a, c under one switch, b, d under the other, numbered by the alphabet.
BOOST_AUTO_TEST_CASE(a_ring_of_neighbours_follows_the_switches_and_not_the_alphabet) {
  const RankPlaces places = places_of({"a", "b", "c", "d"}, {"s1", "s2", "s1", "s2"});
  const std::vector<SlotExchange> ring = {{{0, 1}, 1}, {{1, 2}, 1}, {{2, 3}, 1}, {{0, 3}, 1}};
  const Placement placement = find_placement(places, ring);
  BOOST_TEST(placement.in_order.between(1) == 4);
  BOOST_TEST(placement.score.between(1) == 2);
  BOOST_TEST(placement.is_proved);
}

BOOST_AUTO_TEST_CASE(tensor_groups_come_to_lie_within_hosts_dealt_out_in_turn) {
  const RankPlaces places = places_of({"a", "b", "a", "b"}, {"s", "s", "s", "s"});
  const std::vector<SlotExchange> exchanges = {{{0, 1}, 100}, {{2, 3}, 100}, {{0, 2}, 1}, {{1, 3}, 1}};
  const Placement placement = find_placement(places, exchanges);
  BOOST_TEST(placement.in_order.between(0) == 200);
  BOOST_TEST(placement.score.between(0) == 2);
  BOOST_TEST(places.meeting_level(placement.binding.rank_of_slot[0].value, placement.binding.rank_of_slot[1].value) ==
             0);
}

BOOST_AUTO_TEST_CASE(where_nothing_is_better_slots_stay_in_the_order_of_ranks) {
  const RankPlaces places = places_of({"a", "a", "b", "b"}, {"s", "s", "s", "s"});
  const Placement placement = find_placement(places, {{{0, 1}, 9}, {{2, 3}, 9}, {{1, 2}, 1}});
  BOOST_TEST((placement.binding.rank_of_slot == Binding::identity(4).rank_of_slot));
  BOOST_TEST(find_placement(places, {}).is_proved);
}

BOOST_AUTO_TEST_CASE(bytes_are_counted_where_sender_and_receiver_meet) {
  const RankPlaces places = places_of({"a", "b", "c", "a"}, {"s1", "s1", "s2", "s1"});
  const PlacementScore score = score_placement(places, {{{0, 1, 2}, 10}, {{0, 3}, 5}}, Binding::identity(4));
  BOOST_TEST(score.bytes == (std::vector<double>{0, 10, 10}), boost::test_tools::per_element());
  BOOST_TEST(score.between(0) == 20);
  BOOST_TEST(score.between(1) == 10);
  BOOST_TEST(score.hop_bytes == 2 * 10 + 4 * 10);
}

BOOST_AUTO_TEST_CASE(three_hundred_random_placements_are_as_good_as_the_best_of_all_orders) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 400; ++i) {
    const RandomPlacement made = random_placement(random, 3 + static_cast<int>(random() % 5));
    const Placement placement = find_placement(made.places, made.exchanges);
    BOOST_TEST_REQUIRE(placement.is_proved);
    BOOST_TEST_REQUIRE(is_permutation_of_ranks(placement.binding));
    BOOST_TEST_CONTEXT("instance " << i)
    BOOST_TEST(placement.score.hop_bytes == least_of_all_orders(made.places, made.exchanges),
               boost::test_tools::tolerance(1e-12));
  }
}

BOOST_AUTO_TEST_CASE(larger_ones_are_never_worse_than_the_order_of_ranks) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 50; ++i) {
    const RandomPlacement made = random_placement(random, 24);
    const Placement placement = find_placement(made.places, made.exchanges, 500);
    BOOST_TEST(is_permutation_of_ranks(placement.binding));
    BOOST_TEST(placement.score.hop_bytes <= placement.in_order.hop_bytes);
  }
}
