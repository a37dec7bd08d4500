// A list that lies in place while it is short.
#include "framework/base/inline_vector.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

namespace altiplano::test {

namespace {

using Short = InlineVector<int, 3>;

void check_equal(const Short& list, const std::vector<int>& expected) {
  BOOST_TEST(list.size() == expected.size());
  BOOST_TEST(list.empty() == expected.empty());
  BOOST_TEST(std::vector<int>(list.begin(), list.end()) == expected, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_inline_vector_does_what_a_vector_does_on_both_sides_of_its_size) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Short list;
    std::vector<int> expected;
    for (int step = 0; step < 20; ++step) {
      const auto at = static_cast<std::ptrdiff_t>(random() % (expected.size() + 1));
      const int value = static_cast<int>(random() % 10);
      switch (random() % 5) {
        case 0:
          list.push_back(value);
          expected.push_back(value);
          break;
        case 1:
          if (expected.empty()) break;
          list.pop_back();
          expected.pop_back();
          break;
        case 2:
          list.insert(list.begin() + at, value);
          expected.insert(expected.begin() + at, value);
          break;
        case 3:
          list.erase_if([&](int v) { return v == value; });
          std::erase(expected, value);
          break;
        default:
          list.resize(value % 7u);
          expected.resize(value % 7u);
      }
      check_equal(list, expected);
      const Short copy = list;
      BOOST_TEST((copy == list));
    }
  }
}

BOOST_AUTO_TEST_CASE(inline_vectors_are_ordered_as_words_are) {
  const std::vector<std::vector<int>> words = {{}, {1}, {1, 2}, {1, 2, 0, 4}, {1, 2, 3}, {2}};
  for (const auto& a : words)
    for (const auto& b : words) {
      const Short left(a.begin(), a.end()), right(b.begin(), b.end());
      BOOST_TEST((left < right) == (a < b));
      BOOST_TEST((left == right) == (a == b));
    }
}

}  // namespace altiplano::test
