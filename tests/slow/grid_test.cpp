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

template <typename Visit>
void for_each_case(Visit visit) {
  size_t number = 0;
  for (const Degrees& degrees : degrees_of_all_ranks()) {
    auto is_legal = [&](const Row& row) {
      return (degrees.pipeline > 1 || row[0] == 0) && (degrees.data > 1 || row[1] == 0) &&
             (degrees.tensor > 1 || row[2] == 0);
    };
    for (const Row& row : full_grid({2, 2, 2, 2, 2}, is_legal)) {
      PlanCase c;
      c.degrees = degrees;
      c.microbatch = 24 / degrees.data / microbatches_of(degrees, number++);
      c.schedule = row[0] ? "gpipe" : "1f1b";
      c.zero = row[1];
      c.sequence_parallel = row[2];
      c.tied = row[3] == 0;
      c.optimizer = row[4] ? "sgd" : "adamw";
      visit(c);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(whole_grid)

BOOST_AUTO_TEST_CASE(every_plan_trains_as_one_rank_for_ten_steps) {
  int number = 0;
  TrainOptions options;
  options.validate = true;
  for_each_case([&](const PlanCase& c) {
    check_invariant(c, options);
    ++number;
  });
  BOOST_TEST_MESSAGE(number << " plans");
  BOOST_TEST(number > 350);
}

BOOST_AUTO_TEST_CASE(every_plan_in_fp32_on_device_cpu_trains_as_one_rank) {
  TrainOptions options;
  options.device = "cpu";
  options.validate = true;
  options.learning_rate = 3e-4;
  for_each_case([&](const PlanCase& c) { check_invariant(c, options, DType::kF32, {1e-5, 1e-4, 0.2, true}); });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
