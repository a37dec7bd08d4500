#include "framework/cluster/rank_places.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

BOOST_AUTO_TEST_CASE(addresses_make_groups_of_hosts_and_switches) {
  const auto places = RankPlaces::from_addresses(
      {{"spine", "leaf1", "a"}, {"spine", "leaf2", "b"}, {"spine", "leaf1", "c"}, {"spine", "leaf1", "a"}});
  BOOST_TEST(places.num_levels() == 3);
  BOOST_TEST(places.groups[0] == (std::vector<int>{0, 1, 2, 0}), boost::test_tools::per_element());
  BOOST_TEST(places.groups[1] == (std::vector<int>{0, 1, 0, 0}), boost::test_tools::per_element());
  BOOST_TEST(places.meeting_level(0, 3) == 0);
  BOOST_TEST(places.meeting_level(0, 2) == 1);
  BOOST_TEST(places.meeting_level(0, 1) == 2);
  BOOST_TEST(places.to_string() == "4 ranks on 3 hosts under 2 switches under 1 outer switch");
}

BOOST_AUTO_TEST_CASE(switches_of_one_name_below_unlike_ones_are_two) {
  const auto places = RankPlaces::from_addresses({{"s1", "leaf", "a"}, {"s2", "leaf", "b"}});
  BOOST_TEST(places.num_groups(1) == 2);
  BOOST_TEST(places.meeting_level(0, 1) == 3);
}

BOOST_AUTO_TEST_CASE(of_addresses_of_unlike_lengths_hosts_are_left) {
  const auto places = RankPlaces::from_addresses({{"s", "a"}, {"b"}, {"s", "a"}});
  BOOST_TEST(places.is_cut);
  BOOST_TEST(places.num_levels() == 1);
  BOOST_TEST(places.to_string() == "3 ranks on 2 hosts");
}
