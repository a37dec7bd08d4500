// Offsets of live ranges: nothing that lives at the same time overlaps, and no layout is larger than all ranges side by
// side.
#include "framework/program/arena.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

namespace altiplano {

namespace {

std::vector<LiveRange> random_ranges(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<LiveRange> ranges(1 + random() % 60);
  for (LiveRange& range : ranges) {
    range.bytes = random() % 5 == 0 ? 0 : static_cast<int64_t>(random() % 2000);
    range.first = static_cast<int>(random() % 40);
    range.last = range.first + static_cast<int>(random() % 12);
  }
  return ranges;
}

/// The most bytes that live at one instruction.
int64_t lower_bound_of(const std::vector<LiveRange>& ranges) {
  int64_t most = 0;
  for (int at = 0; at < 60; ++at) {
    int64_t sum = 0;
    for (const LiveRange& r : ranges)
      if (r.first <= at && at <= r.last) sum += align_up(r.bytes);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(arena)

BOOST_AUTO_TEST_CASE(ranges_alive_together_never_overlap) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    auto ranges = random_ranges(seed);
    int64_t total = assign_offsets(ranges), sum = 0;
    for (const LiveRange& a : ranges) {
      sum += align_up(a.bytes);
      BOOST_TEST(a.offset % kBufferAlignment == 0);
      BOOST_TEST(a.offset + a.bytes <= total);
      for (const LiveRange& b : ranges) {
        if (&a == &b || a.bytes == 0 || b.bytes == 0 || a.last < b.first || b.last < a.first) continue;
        BOOST_TEST((a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset), "seed " << seed);
      }
    }
    BOOST_TEST(total <= sum);
    BOOST_TEST(total >= lower_bound_of(ranges));
  }
}

BOOST_AUTO_TEST_CASE(ranges_that_follow_each_other_share_their_place) {
  std::vector<LiveRange> ranges;
  for (int i = 0; i < 10; ++i) ranges.push_back({100, i, i});
  BOOST_TEST(assign_offsets(ranges) == align_up(100));
}

BOOST_AUTO_TEST_CASE(equal_ranges_give_equal_offsets) {
  auto first = random_ranges(7), second = first;
  BOOST_TEST(assign_offsets(first) == assign_offsets(second));
  for (size_t i = 0; i < first.size(); ++i) BOOST_TEST(first[i].offset == second[i].offset);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano
