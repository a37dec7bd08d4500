// Plan invariance over real processes with comm/shm: the same programs, the same numbers.
#include "tests/support/covering_array.hpp"
#include "tests/support/invariance.hpp"

namespace altiplano::test {

namespace {

/// Every degree triple of up to 8 ranks with settings that rotate.
std::vector<PlanCase> process_cases() {
  std::vector<PlanCase> cases;
  int number = 0;
  for (const Degrees& degrees : degrees_of_all_ranks()) {
    PlanCase c;
    c.degrees = degrees;
    int64_t per_replica = 24 / degrees.data;
    c.microbatch = per_replica % (1 + number % 3) == 0 ? per_replica / (1 + number % 3) : per_replica;
    c.schedule = number % 2 == 0 ? "1f1b" : "gpipe";
    c.zero = number / 2 % 4;
    c.sequence_parallel = number / 3 % 2 == 0;
    c.tied = number % 5 != 0;
    c.optimizer = number % 4 == 3 ? "sgd" : "adamw";
    cases.push_back(c);
    ++number;
  }
  return cases;
}

TrainOptions over_shm() {
  TrainOptions options;
  options.comm = "shm";
  options.processes = true;
  options.steps = 2;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(processes)

BOOST_AUTO_TEST_CASE(thirty_plans_train_alike_over_processes) {
  auto cases = process_cases();
  BOOST_TEST(cases.size() >= 30u);
  for (const PlanCase& c : cases) check_invariant(c, over_shm());
}

BOOST_AUTO_TEST_CASE(processes_and_threads_give_the_same_bits) {
  PlanCase c;
  c.degrees = {2, 2, 1};
  c.microbatch = 6;
  TrainOptions threads;
  threads.steps = 2;
  const TrainingGraph& graph = graph_of(c);
  Plan plan = plan_of(c, graph);
  BOOST_TEST(is_bit_identical(train(graph, plan, over_shm()), train(graph, plan, threads)));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
