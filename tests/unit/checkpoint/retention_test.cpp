#include "framework/checkpoint/retention.hpp"

using namespace altiplano;

namespace {

std::vector<int64_t> removed_steps(std::vector<CheckpointAge> ages, const KeepRule& rule) {
  std::vector<int64_t> steps;
  for (const CheckpointAge& age : ages_to_remove(std::move(ages), rule)) steps.push_back(age.step);
  return steps;
}

void check_removed(const std::vector<CheckpointAge>& ages, const KeepRule& rule, const std::vector<int64_t>& expected) {
  BOOST_TEST(removed_steps(ages, rule) == expected, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_newest_stay_by_number_not_by_text) {
  check_removed({{1, 10000}, {1, 900}, {1, 9000}, {1, 1000}}, {.last = 2}, {900, 1000});
  check_removed({{1, 10000}, {1, 900}}, {.last = 0}, {});
  check_removed({{1, 10000}, {1, 900}}, {.last = 5}, {});
  check_removed({}, {.last = 1}, {});
}

BOOST_AUTO_TEST_CASE(multiples_of_keep_every_stay_for_good) {
  check_removed({{1, 100}, {1, 200}, {1, 300}, {1, 400}, {1, 500}, {1, 600}}, {.last = 1, .every = 300},
                {100, 200, 400, 500});
}

BOOST_AUTO_TEST_CASE(steps_that_a_run_left_behind_are_older_than_what_its_later_start_wrote) {
  check_removed({{1, 900}, {1, 1000}, {2, 500}}, {.last = 1}, {900, 1000});
  check_removed({{1, 900}, {1, 1000}, {2, 500}}, {.last = 2}, {900});
}

BOOST_AUTO_TEST_CASE(the_number_that_lies_there_at_one_time_counts_the_one_being_written) {
  BOOST_TEST(most_checkpoints({.last = 3}, 100, 10000) == 4);
  BOOST_TEST(most_checkpoints({.last = 3}, 100, 200) == 2);
  BOOST_TEST(most_checkpoints({.last = 0}, 100, 1050) == 11);
  BOOST_TEST(most_checkpoints({.last = 3}, 0, 1000) == 1);
  BOOST_TEST(most_checkpoints({.last = 2, .every = 500}, 100, 2000) == 7);
}
