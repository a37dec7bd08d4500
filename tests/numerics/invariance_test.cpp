// Plan invariance (design invariant 2): every legal plan trains the same model.
#include <boost/test/unit_test.hpp>

#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/train.hpp"

namespace altiplano::test {

namespace {

GptShape invariance_shape() {
  GptShape shape;
  shape.layers = 8, shape.hidden = 48, shape.heads = 24, shape.vocabulary = 257, shape.batch = 24, shape.sequence = 6, shape.dropout = 0.1;
  return shape;
}

DegreePlanOptions degrees(int data, int tensor, int pipeline, int64_t microbatch) {
  DegreePlanOptions options;
  options.degrees = {data, tensor, pipeline};
  options.microbatch = microbatch;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_invariance)

BOOST_AUTO_TEST_CASE(smoke) {
  TrainingGraph graph = make_gpt_training(invariance_shape());
  TrainOptions run;
  run.steps = 3;
  TrainResult one = train(graph, make_plan(graph, degrees(1, 1, 1, 24)), run);
  for (auto [d, t, p, m] : {std::tuple{1, 1, 1, 4}, {2, 1, 1, 4}, {1, 2, 1, 4}, {1, 1, 2, 4}, {3, 1, 1, 2}, {1, 3, 1, 8}, {2, 2, 1, 3}, {1, 2, 2, 4}, {2, 2, 2, 2}}) {
    TrainResult other = train(graph, make_plan(graph, degrees(d, t, p, m)), run);
    std::string name = fmt::format("data {} tensor {} pipeline {} micro {}", d, t, p, m);
    BOOST_TEST(largest_difference(other.losses, one.losses) < 1e-9, name << " loss " << other.losses[0] << " " << one.losses[0]);
    BOOST_TEST(largest_difference(other.norms, one.norms) < 1e-9, name << " norm " << other.norms[0] << " " << one.norms[0]);
    BOOST_TEST(largest_difference(other.tensors, one.tensors) < 1e-9, name << " weights");
    BOOST_TEST(largest_difference(other.initial, one.initial) == 0, name << " initial");
    BOOST_TEST(other.replicas_differ == "", name);
    BOOST_TEST(other.predicted_bytes == other.peak_bytes, name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
