#include "framework/base/random.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

using namespace altiplano;

BOOST_AUTO_TEST_CASE(philox_gives_the_published_words) {
  // Known answers of Random123 (kat_vectors, philox4x32 10 rounds): counter 0 key 0, and counter and key all ones.
  auto zero = random_quad(0, 0, 0);
  BOOST_TEST((zero == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  auto ones = random_quad(~0ull, ~0ull, ~0ull);
  BOOST_TEST((ones == std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

BOOST_AUTO_TEST_CASE(numbers_depend_on_seed_name_step_and_index_and_on_nothing_else) {
  uint64_t stream = random_stream(1, "block.0.dropout");
  BOOST_TEST(random_stream(1, "block.0.dropout") == stream);
  BOOST_TEST(random_stream(2, "block.0.dropout") != stream);
  BOOST_TEST(random_stream(1, "block.1.dropout") != stream);
  BOOST_TEST(random_word(stream, 3, 5) == random_quad(stream, 3, 1)[1]);
  BOOST_TEST(random_word(stream, 3, 5) != random_word(stream, 4, 5));
  std::set<uint32_t> words;
  for (uint64_t i = 0; i < 1000; ++i) words.insert(random_word(stream, 0, i));
  BOOST_TEST(words.size() >= 999u);
}

BOOST_AUTO_TEST_CASE(uniform_numbers_are_inside_the_open_interval_with_the_right_moments) {
  uint64_t stream = random_stream(7, "moments");
  constexpr int kCount = 200000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kCount; ++i) {
    double u = random_uniform(stream, 0, static_cast<uint64_t>(i));
    BOOST_REQUIRE(u > 0 && u < 1);
    sum += u;
    squares += u * u;
  }
  BOOST_TEST(std::abs(sum / kCount - 0.5) < 5 * std::sqrt(1.0 / 12 / kCount));
  BOOST_TEST(std::abs(squares / kCount - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / kCount));
}

BOOST_AUTO_TEST_CASE(normal_numbers_have_mean_0_variance_1_and_no_lag_correlation) {
  uint64_t stream = random_stream(7, "normal");
  constexpr int kCount = 200000;
  double sum = 0, squares = 0, lagged = 0, previous = 0;
  for (int i = 0; i < kCount; ++i) {
    double z = random_normal(stream, 0, static_cast<uint64_t>(i));
    sum += z;
    squares += z * z;
    lagged += z * previous;
    previous = z;
  }
  double sigma = 1 / std::sqrt(kCount);
  BOOST_TEST(std::abs(sum / kCount) < 5 * sigma);
  BOOST_TEST(std::abs(squares / kCount - 1) < 5 * std::sqrt(2.0) * sigma);
  BOOST_TEST(std::abs(lagged / kCount) < 5 * sigma);
}

BOOST_AUTO_TEST_CASE(normal_numbers_are_the_box_muller_transform_of_their_words) {
  const uint64_t stream = random_stream(3, "formula");
  for (uint64_t i = 0; i < 100000; ++i) {
    const auto words = random_quad(stream, 0, i);
    const double u = (words[0] + 0.5) / 4294967296.0, v = (words[1] + 0.5) / 4294967296.0;
    const double expected = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    BOOST_REQUIRE_SMALL(random_normal(stream, 0, i) - expected, 1e-14);
  }
}

BOOST_AUTO_TEST_CASE(many_normal_numbers_at_once_have_the_bits_of_each_alone) {
  const uint64_t stream = random_stream(3, "many");
  const uint64_t beyond_32_bits = (uint64_t{1} << 32) - 100;  // the counter's second word changes on the way
  for (const uint64_t first : {uint64_t{0}, uint64_t{7}, beyond_32_bits})
    for (const size_t count : {1u, 255u, 256u, 257u, 1000u}) {
      std::vector<double> numbers(count);
      random_normals(stream, 9, first, numbers);
      for (size_t i = 0; i < count; ++i) BOOST_REQUIRE_EQUAL(numbers[i], random_normal(stream, 9, first + i));
    }
}
