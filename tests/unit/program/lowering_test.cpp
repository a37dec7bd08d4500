#include "framework/program/lowering.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

BOOST_AUTO_TEST_SUITE(lowering)

BOOST_AUTO_TEST_CASE(every_small_plan_lowers_to_programs_that_verify) {
  GptShape shape;
  shape.layers = 4, shape.hidden = 12, shape.heads = 6, shape.vocabulary = 257, shape.batch = 12, shape.sequence = 5,
  shape.dropout = 0.1;
  for (bool tied : {true, false}) {
    shape.tied = tied;
    TrainingGraph graph = make_gpt_training(shape);
    for (int data : {1, 2, 3})
      for (int tensor : {1, 2, 3})
        for (int pipeline : {1, 2, 3})
          for (bool sequence : {false, true})
            for (int zero : {0, 1}) {
              DegreePlanOptions options;
              options.degrees = {data, tensor, pipeline};
              options.microbatch = 2;
              options.sequence_parallel = sequence;
              options.zero = zero;
              auto programs = lower_plan(graph, make_plan(graph, options));
              BOOST_TEST(programs.size() == static_cast<size_t>(data * tensor * pipeline));
            }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
