#include "framework/search/frontier.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>

using namespace altiplano;

namespace {

/// Times and bytes in halves, so that sums are exact in any order.
Frontier random_frontier(std::mt19937_64& random, size_t most, size_t num_ways) {
  std::vector<FrontierPoint> points;
  for (size_t i = random() % (most + 1); i > 0; --i) {
    FrontierPoint point{0.5 * static_cast<double>(random() % 9), 0.5 * static_cast<double>(random() % 9),
                        std::vector<int>(num_ways, 0)};
    point.ways[random() % num_ways] = 1;
    points.push_back(std::move(point));
  }
  return pareto(std::move(points));
}

/// The least time of any chain of layers through any specs whose bytes keep the limit, tried one by one.
double least_of_all(const std::vector<const FrontierMatrix*>& layers, size_t layer, size_t in, size_t out,
                    double bytes) {
  if (bytes < 0) return std::numeric_limits<double>::infinity();
  if (layer == layers.size()) return in == out ? 0 : std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();
  const auto& row = (*layers[layer])[in];
  for (size_t next = 0; next < row.size(); ++next)
    for (const FrontierPoint& point : row[next])
      least = std::min(least, point.seconds + least_of_all(layers, layer + 1, next, out, bytes - point.bytes));
  return least;
}

double seconds_within(const Frontier& frontier, double bytes) {
  const FrontierPoint* point = fastest_within(frontier, bytes);
  return point ? point->seconds : std::numeric_limits<double>::infinity();
}

}  // namespace

BOOST_AUTO_TEST_CASE(three_hundred_random_chains_have_the_frontier_that_trying_everything_finds) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const size_t specs = 1 + random() % 3;
    auto random_matrix = [&] {
      FrontierMatrix matrix(specs);
      for (auto& row : matrix)
        for (size_t j = 0; j < specs; ++j) row.push_back(random_frontier(random, 2, 2));
      return matrix;
    };
    const FrontierMatrix first = random_matrix(), equal = random_matrix(), last = random_matrix();
    const int depth = static_cast<int>(random() % 4);
    const FrontierMatrix chain = first * power(equal, depth) * last;
    std::vector<const FrontierMatrix*> layers(static_cast<size_t>(depth), &equal);
    layers.insert(layers.begin(), &first);
    layers.push_back(&last);
    BOOST_TEST_CONTEXT("seed " << seed) {
      for (size_t in = 0; in < specs; ++in)
        for (size_t out = 0; out < specs; ++out)
          for (double bytes = 0; bytes <= 24; bytes += 0.5) {
            const double least = least_of_all(layers, 0, in, out, bytes), found = seconds_within(chain[in][out], bytes);
            BOOST_TEST(found == least);
          }
    }
  }
}

BOOST_AUTO_TEST_CASE(equal_parts_cost_their_logarithm_and_say_how_many_go_which_way) {
  const Frontier part = pareto({{1, 10, {1, 0}}, {1.25, 2, {0, 1}}});
  const Frontier thousand = times(part, 1000);
  BOOST_REQUIRE(thousand.size() == 1001u);
  for (const FrontierPoint& point : thousand) {
    BOOST_TEST(point.ways[0] + point.ways[1] == 1000);
    BOOST_TEST(point.seconds == point.ways[0] + 1.25 * point.ways[1]);
    BOOST_TEST(point.bytes == 10 * point.ways[0] + 2 * point.ways[1]);
  }
  BOOST_TEST(fastest_within(thousand, 2000)->ways[1] == 1000);
  BOOST_TEST(fastest_within(thousand, 9999)->ways[1] == 1);
  BOOST_TEST(fastest_within(thousand, 1999) == nullptr);
  BOOST_TEST(times(part, 0)[0].bytes == 0);
}

BOOST_AUTO_TEST_CASE(frontiers_keep_what_no_other_beats) {
  const Frontier frontier = pareto({{3, 1, {}}, {1, 5, {}}, {2, 5, {}}, {1, 4, {}}, {3, 1, {}}, {4, 2, {}}});
  BOOST_REQUIRE(frontier.size() == 2u);
  BOOST_TEST(frontier[0].bytes == 4);
  BOOST_TEST(frontier[1].seconds == 3);
  BOOST_TEST(either(frontier, {{0, 9, {}}}).size() == 3u);
  BOOST_TEST((frontier + Frontier{}).empty());
}

BOOST_AUTO_TEST_CASE(thinned_frontiers_keep_their_ends_and_an_even_choice_between) {
  const Frontier whole = times(pareto({{1, 10, {}}, {2, 2, {}}}), 100);
  const Frontier few = thinned(whole, 6);
  BOOST_REQUIRE(few.size() == 6u);
  BOOST_TEST(few.front().seconds == whole.front().seconds);
  BOOST_TEST(few.back().bytes == whole.back().bytes);
  for (size_t i = 0; i + 1 < few.size(); ++i)
    BOOST_TEST(few[i].bytes - few[i + 1].bytes <= 1.1 * (whole.front().bytes - whole.back().bytes) / 5);
  BOOST_TEST(thinned(few, 9).size() == 6u);
}
