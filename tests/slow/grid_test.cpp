// The whole grid of plan invariance: every data/tensor/pipeline triple of 1, 2, 3, 4, 6 and 8 ranks with every setting,
// ten steps each.
#include "tests/support/covering_array.hpp"
#include "tests/support/invariance.hpp"

namespace altiplano::test {

namespace {

/// Number of microbatches of the nth case: rotates over what divides the replica's samples.
int64_t microbatches_of(const Degrees& degrees, size_t number) {
  std::vector<int64_t> counts;
  for (int64_t count : {1, 2, 3, 4, 6, 8})
    if (24 / degrees.data % count == 0) counts.push_back(count);
  return counts[number % counts.size()];
}

/// Calls visit(case) for every setting of every triple of `ranks`; returns how many.
template <typename Visit>
int for_each_case(int ranks, Visit visit) {
  int number = 0;
  for (const Degrees& degrees : degrees_of_all_ranks()) {
    if (degrees.num_ranks() != ranks) continue;
    auto is_legal = [&](const Row& row) {
      return (degrees.pipeline > 1 || row[0] == 0) && (degrees.data > 1 || row[1] == 0) &&
             (degrees.tensor > 1 || row[2] == 0);
    };
    for (const Row& row : full_grid({2, 2, 2, 2, 2}, is_legal)) {
      PlanCase c;
      c.degrees = degrees;
      c.microbatch = 24 / degrees.data / microbatches_of(degrees, static_cast<size_t>(number++));
      c.schedule = row[0] ? "gpipe" : "1f1b";
      c.zero = row[1];
      c.sequence_parallel = row[2];
      c.tied = row[3] == 0;
      c.optimizer = row[4] ? "sgd" : "adamw";
      visit(c);
    }
  }
  return number;
}

void check_grid(int ranks) {
  TrainOptions exact, single;
  exact.validate = single.validate = true;
  single.device = "cpu";
  single.learning_rate = 3e-4;
  int number = for_each_case(ranks, [&](const PlanCase& c) {
    check_invariant(c, exact);
    check_invariant(c, single, DType::kF32, {1e-5, 1e-4, 0.2, true});
  });
  BOOST_TEST_MESSAGE(ranks << " ranks: " << number << " plans, in f64 and in fp32");
  BOOST_TEST(number >= 4);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(whole_grid)

BOOST_AUTO_TEST_CASE(every_plan_of_one_rank_trains_as_one_rank) {
  check_grid(1);
}

BOOST_AUTO_TEST_CASE(every_plan_of_two_ranks_trains_as_one_rank) {
  check_grid(2);
}

BOOST_AUTO_TEST_CASE(every_plan_of_three_ranks_trains_as_one_rank) {
  check_grid(3);
}

BOOST_AUTO_TEST_CASE(every_plan_of_four_ranks_trains_as_one_rank) {
  check_grid(4);
}

BOOST_AUTO_TEST_CASE(every_plan_of_six_ranks_trains_as_one_rank) {
  check_grid(6);
}

BOOST_AUTO_TEST_CASE(every_plan_of_eight_ranks_trains_as_one_rank) {
  check_grid(8);
}

BOOST_AUTO_TEST_CASE(every_triple_of_degrees_trains_packed_documents_as_one_rank) {
  TrainOptions options;
  options.steps = 3;
  options.validate = true;
  size_t number = 0;
  for (const Degrees& degrees : degrees_of_all_ranks()) {
    PlanCase c;
    c.degrees = degrees;
    c.packed = true;
    c.microbatch = 24 / degrees.data / microbatches_of(degrees, number);
    c.schedule = number % 2 == 0 ? "1f1b" : "gpipe";
    c.sequence_parallel = number % 3 != 0;
    c.tied = number % 4 != 0;
    check_invariant(c, options);
    ++number;
  }
  BOOST_TEST(number >= 30u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
