#include "framework/program/lowering.hpp"

#include <boost/test/unit_test.hpp>
#include <map>

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
            for (int zero : {0, 1, 2, 3}) {
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

namespace {

/// Bytes of a rank's tensors by role; parameters that are kept elsewhere too count as parameters.
std::map<TensorRole, int64_t> bytes_by_role(const Program& program) {
  std::map<TensorRole, int64_t> bytes;
  for (const PersistentTensor& tensor : program.tensors) bytes[tensor.role] += program.buffer(tensor.buffer).bytes;
  return bytes;
}

Plan replicas_at_zero(const TrainingGraph& graph, int replicas, int zero) {
  DegreePlanOptions options;
  options.degrees = {replicas, 1, 1};
  options.microbatch = 1;
  options.zero = zero;
  return make_plan(graph, options);
}

}  // namespace

// ZeRO paper, figure 1: what is P bytes on one rank is P/N on each of N from its stage on.
BOOST_AUTO_TEST_CASE(each_zero_stage_splits_what_it_says_over_the_replicas) {
  GptShape shape;
  shape.layers = 4, shape.hidden = 16, shape.heads = 4, shape.vocabulary = 64, shape.batch = 8, shape.sequence = 8;
  const TrainingGraph graph = make_gpt_training(shape);
  constexpr int kReplicas = 4;
  const auto whole = bytes_by_role(lower_plan(graph, replicas_at_zero(graph, kReplicas, 0)).front());
  for (int zero : {1, 2, 3}) {
    for (const Program& program : lower_plan(graph, replicas_at_zero(graph, kReplicas, zero))) {
      auto bytes = bytes_by_role(program);
      auto share = [&](TensorRole role, int from) { return whole.at(role) / (zero >= from ? kReplicas : 1); };
      BOOST_TEST(bytes[TensorRole::kOptimizerState] == share(TensorRole::kOptimizerState, 1));
      BOOST_TEST(bytes[TensorRole::kGradient] == share(TensorRole::kGradient, 2));
      BOOST_TEST(bytes[TensorRole::kParameter] == share(TensorRole::kParameter, 3));
    }
  }
}

// Under stage 3 a layer's parameters are whole while it runs, not all layers' at once.
BOOST_AUTO_TEST_CASE(gathered_parameters_are_let_go_after_their_layer) {
  GptShape shape;
  shape.hidden = 64, shape.heads = 4, shape.vocabulary = 16, shape.batch = 4, shape.sequence = 4;
  auto lowered = [&](int layers, int zero) {
    shape.layers = layers;
    const TrainingGraph graph = make_gpt_training(shape);
    return lower_plan(graph, replicas_at_zero(graph, 4, zero)).front();
  };
  auto gathers = [](const Program& program) {
    const Block& forward = program.blocks.front();
    return std::ranges::count_if(forward.instructions, [](const Instruction& instruction) {
      const auto* collective = std::get_if<CollectiveInstruction>(&instruction.what);
      return collective != nullptr && collective->kind == CollectiveKind::kAllGather;
    });
  };
  constexpr int64_t kBlockBytes = 12 * 64 * 64 * 8;  // of its four products' weights in f64
  BOOST_TEST(gathers(lowered(8, 1)) == 0);
  BOOST_TEST(gathers(lowered(8, 3)) == 8 + 2);  // one bucket per layer
  BOOST_TEST(lowered(8, 3).work_bytes - lowered(2, 3).work_bytes < kBlockBytes / 2);
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
