#include "framework/runtime/data/sample_order.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace altiplano;

namespace {

std::vector<int64_t> epoch_order(uint64_t seed, int64_t epoch, int64_t n) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i) order.push_back(sample_at(seed, epoch, i, n));
  return order;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_epoch_holds_every_sample_once) {
  for (int64_t n : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 63, 64, 65, 100, 1000, 34406, 65537}) {
    for (int64_t epoch : {0, 1, 7}) {
      std::vector<int64_t> order = epoch_order(5, epoch, n), expected(static_cast<size_t>(n));
      std::ranges::sort(order);
      std::iota(expected.begin(), expected.end(), 0);
      BOOST_TEST((order == expected), "n " << n << " epoch " << epoch);
    }
  }
}

BOOST_AUTO_TEST_CASE(epochs_and_seeds_have_orders_of_their_own) {
  auto order = epoch_order(1, 0, 100);
  BOOST_TEST((order == epoch_order(1, 0, 100)));
  BOOST_TEST((order != epoch_order(1, 1, 100)));
  BOOST_TEST((order != epoch_order(2, 0, 100)));
}

BOOST_AUTO_TEST_CASE(the_order_of_a_known_seed_does_not_change_between_releases) {
  BOOST_TEST(epoch_order(1, 0, 10) == (std::vector<int64_t>{9, 1, 3, 5, 2, 8, 6, 4, 7, 0}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_order_looks_random) {
  // Spearman correlation between index and sample: |rho| < 4 / sqrt(n) for a random permutation, nearly surely.
  constexpr int64_t n = 10000;
  for (uint64_t seed : {1, 2, 3}) {
    auto order = epoch_order(seed, 0, n);
    double sum = 0, fixed = 0;
    for (int64_t i = 0; i < n; ++i) {
      double d = static_cast<double>(order[static_cast<size_t>(i)] - i);
      sum += d * d;
      fixed += d == 0;
    }
    double rho = 1 - 6 * sum / (static_cast<double>(n) * (static_cast<double>(n) * n - 1));
    BOOST_TEST(std::abs(rho) < 4 / std::sqrt(static_cast<double>(n)));
    BOOST_TEST(fixed < 10);
  }
}

BOOST_AUTO_TEST_CASE(every_order_of_three_samples_comes_up) {
  std::vector<int> seen(27);
  for (int64_t epoch = 0; epoch < 600; ++epoch) {
    auto order = epoch_order(9, epoch, 3);
    ++seen[static_cast<size_t>(order[0] * 9 + order[1] * 3 + order[2])];
  }
  BOOST_TEST(std::ranges::count_if(seen, [](int times) { return times > 50; }) == 6);
}

BOOST_AUTO_TEST_CASE(the_running_count_goes_on_into_the_next_epoch) {
  BOOST_TEST(sample_at(3, 25, 10) == sample_at(3, 2, 5, 10));
}
