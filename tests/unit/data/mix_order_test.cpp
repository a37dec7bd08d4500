#include "framework/runtime/data/mix_order.hpp"

#include <cmath>
#include <map>
#include <set>

using namespace altiplano;

BOOST_AUTO_TEST_CASE(each_file_counts_its_own_samples_without_a_gap) {
  for (const std::vector<double>& weights :
       {std::vector<double>{1}, {1, 1}, {0.7, 0.3}, {5, 1e-3, 2}, {1e300, 1e300, 3e300}, {3, 1, 4, 1, 5, 9}}) {
    std::vector<WeightedFile> files;
    for (double weight : weights) files.push_back({std::to_string(files.size()), weight});
    MixOrder order = MixOrder::from_weights(files);
    double sum = 0;
    for (double weight : weights) sum += weight / weights[0];
    std::vector<int64_t> next(files.size());
    for (int64_t n = 0; n < 5000; ++n) {
      MixOrder::Place place = order.place_of(n);
      BOOST_REQUIRE(place.index == next[place.file]);
      ++next[place.file];
    }
    for (size_t f = 0; f < files.size(); ++f) {
      double expected = 5000 * (weights[f] / weights[0]) / sum;
      BOOST_TEST(std::abs(static_cast<double>(next[f]) - expected) <= static_cast<double>(files.size()));
    }
  }
}

BOOST_AUTO_TEST_CASE(shares_that_are_counts_give_every_sample_exactly_once) {
  MixOrder order({7, 1, 12, 3});
  std::set<std::pair<size_t, int64_t>> seen;
  for (int64_t n = 0; n < 23; ++n) seen.insert({order.place_of(n).file, order.place_of(n).index});
  BOOST_TEST(seen.size() == 23u);
  BOOST_TEST(seen.count({2, 11}) == 1u);
  BOOST_TEST(seen.count({2, 12}) == 0u);
}

BOOST_AUTO_TEST_CASE(samples_late_in_a_very_long_run_still_have_their_place) {
  MixOrder order = MixOrder::from_weights({{"a", 1}, {"b", 1}});
  constexpr int64_t kLate = int64_t{1} << 60;
  std::set<size_t> files;
  for (int64_t n = kLate; n < kLate + 2; ++n) files.insert(order.place_of(n).file);
  BOOST_TEST(files.size() == 2u);
  BOOST_TEST(order.place_of(kLate).index == kLate / 2);
}
