// 2N steps are N steps, the state taken out whole and put into another plan, N more: the same bits under the same plan,
// the same numbers under any other, ranks growing and shrinking.
#include "tests/support/invariance.hpp"

namespace altiplano::test {

namespace {

constexpr int kHalf = 2;

PlanCase resumed_case(int data, int tensor, int pipeline, int zero, const std::string& optimizer = "adamw") {
  PlanCase c;
  c.degrees = {data, tensor, pipeline};
  c.zero = zero;
  c.microbatch = 24 / data / 2;
  c.optimizer = optimizer;
  return c;
}

TrainResult run_half(const PlanCase& c, const TrainResult* before) {
  TrainOptions options;
  options.steps = kHalf;
  if (before) options.start = &before->tensors, options.first_step = kHalf + 1;
  const TrainingGraph& graph = graph_of(c);
  return train(graph, plan_of(c, graph), options);
}

void check_resumed(const PlanCase& before, const PlanCase& after) {
  TrainOptions whole;
  whole.steps = 2 * kHalf;
  const TrainResult& one = one_rank_run(before, DType::kF64, whole);
  TrainResult first = run_half(before, nullptr), second = run_half(after, &first);
  std::string name = before.to_string() + " -> " + after.to_string();
  BOOST_TEST(largest_difference(second.tensors, one.tensors) < 1e-9, name);
  for (int i = 0; i < kHalf; ++i) {
    auto at = static_cast<size_t>(i);
    BOOST_TEST(std::abs(second.losses[at] - one.losses[at + kHalf]) < 1e-9, name << " step " << kHalf + i + 1);
    BOOST_TEST(std::abs(second.norms[at] - one.norms[at + kHalf]) < 1e-9, name << " step " << kHalf + i + 1);
  }
  BOOST_TEST(largest_difference(second.initial, first.tensors) == 0, name << ": the state changed on its way");
  BOOST_TEST(second.replicas_differ == "", name);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(resume)

BOOST_AUTO_TEST_CASE(the_same_plan_goes_on_with_the_same_bits) {
  for (const PlanCase& c :
       {resumed_case(1, 1, 1, 0), resumed_case(2, 2, 1, 1), resumed_case(1, 2, 2, 0), resumed_case(2, 1, 2, 1)}) {
    TrainOptions whole;
    whole.steps = 2 * kHalf;
    const TrainingGraph& graph = graph_of(c);
    TrainResult through = train(graph, plan_of(c, graph), whole);
    TrainResult first = run_half(c, nullptr), second = run_half(c, &first);
    TrainResult joined = second;
    joined.losses = first.losses, joined.norms = first.norms;
    joined.losses.insert(joined.losses.end(), second.losses.begin(), second.losses.end());
    joined.norms.insert(joined.norms.end(), second.norms.begin(), second.norms.end());
    BOOST_TEST(is_bit_identical(joined, through), c.to_string());
  }
}

BOOST_AUTO_TEST_CASE(any_other_plan_goes_on_with_the_same_numbers) {
  check_resumed(resumed_case(1, 1, 1, 0), resumed_case(4, 1, 1, 1));
  check_resumed(resumed_case(4, 1, 1, 1), resumed_case(1, 1, 1, 0));
  check_resumed(resumed_case(2, 1, 1, 1), resumed_case(2, 2, 2, 1));
  check_resumed(resumed_case(2, 2, 2, 1), resumed_case(1, 2, 1, 0));
  check_resumed(resumed_case(2, 2, 1, 1), resumed_case(2, 1, 2, 1));  // the quickstart's pair
  check_resumed(resumed_case(1, 3, 1, 0), resumed_case(3, 1, 2, 1));
  check_resumed(resumed_case(3, 2, 1, 1), resumed_case(1, 1, 3, 0));
  check_resumed(resumed_case(2, 1, 1, 0), resumed_case(2, 1, 1, 1));  // the optimizer state becomes split
  check_resumed(resumed_case(1, 1, 8, 0, "sgd"), resumed_case(1, 8, 1, 0, "sgd"));
  check_resumed(resumed_case(1, 4, 1, 0, "sgd"), resumed_case(4, 1, 2, 1, "sgd"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
