#include "framework/program/lowering.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/sanitized.hpp"

namespace altiplano::test {

BOOST_AUTO_TEST_SUITE(lowering)

BOOST_AUTO_TEST_CASE(every_small_plan_lowers_to_programs_that_verify) {
  GptShape shape;
  shape.layers = 4, shape.hidden = 12, shape.heads = 6, shape.vocabulary = 257, shape.batch = 12, shape.sequence = 5,
  shape.dropout = 0.1;
  int num_plans = 0;
  for (bool tied : {true, false}) {
    shape.tied = tied;
    TrainingGraph graph = make_gpt_training(shape);
    for (int data : {1, 2, 3})
      for (int tensor : {1, 2, 3})
        for (int pipeline : {1, 2, 3})
          for (bool sequence : {false, true})
            for (int zero : {0, 1}) {
              if (num_plans++ % every(9) != 0) continue;
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

BOOST_AUTO_TEST_CASE(one_rank_alone_lowers_to_what_it_is_among_all) {
  GptShape shape;
  shape.layers = 4, shape.batch = 8, shape.vocabulary = 12;
  const TrainingGraph graph = make_gpt_training(shape);
  DegreePlanOptions options;
  options.degrees = {2, 2, 2};
  options.microbatch = 2;
  options.zero = 1;
  const Plan plan = make_plan(graph, options);
  const std::vector<Program> all = lower_plan(graph, plan);
  for (const Program& program : all) {
    auto alone = lower_rank(graph, plan, make_timetable(plan), Binding::identity(8), program.rank);
    BOOST_REQUIRE_MESSAGE(alone.is_ok(), alone.status().to_string());
    BOOST_TEST(alone->to_string() == program.to_string());
    BOOST_TEST(verify_program(*alone).is_ok());
  }
  auto nobody = lower_rank(graph, plan, make_timetable(plan), Binding::identity(8), RankId(8));
  BOOST_REQUIRE(!nobody.is_ok());
  BOOST_TEST(nobody.status().message() == "the binding has no rank 8");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
