#include "framework/runtime/job_placement.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

namespace {

const std::vector<SlotExchange> kExchanges = {{{0, 1}, 100 << 20}, {{2, 3}, 100 << 20}, {{0, 2}, 1 << 20}};

std::string words_of(const std::vector<NetworkAddress>& addresses) {
  const auto places = RankPlaces::from_addresses(addresses);
  return placement_in_words(places, find_placement(places, kExchanges));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_placement_says_what_crosses_and_what_would_without_it) {
  BOOST_TEST(words_of({{"a"}, {"b"}, {"a"}, {"b"}}) ==
             "4 ranks on 2 hosts: a step sends 1.0 MiB between hosts (with ranks in their order 200.0 MiB)");
  BOOST_TEST(words_of({{"s", "a"}, {"s", "a"}, {"s", "b"}, {"s", "b"}}) ==
             "4 ranks on 2 hosts under 1 switch: a step sends 1.0 MiB between hosts (ranks in their order)");
  BOOST_TEST(
      words_of({{"s", "a"}, {"t", "c"}, {"s", "b"}, {"t", "d"}}) ==
      "4 ranks on 4 hosts under 2 switches: a step sends 201.0 MiB between hosts, 1.0 MiB of it between switches "
      "(with ranks in their order 201.0 MiB, 200.0 MiB)");
}

BOOST_AUTO_TEST_CASE(the_first_rank_is_understood_and_other_words_are_refused) {
  const auto proved = plan_as_told("2 0 1\nstages: []\n", RankId(1));
  BOOST_REQUIRE(proved.is_ok());
  BOOST_TEST((proved->binding.rank_of_slot == std::vector<RankId>{RankId(2), RankId(0), RankId(1)}));
  BOOST_TEST(proved->text == "stages: []\n");
  BOOST_TEST(plan_as_told("stages: []\n", RankId(1)).status().message() ==
             "what the first rank told of its plan begins with 'stages:', which is no rank");
}
