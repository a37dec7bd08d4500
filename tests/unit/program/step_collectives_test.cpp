// Of golden results C, what a whole step must contain, the rows of split blocks.
#include <boost/test/unit_test.hpp>

#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

std::vector<Program> programs_of(const TrainingGraph& graph, const Degrees& degrees, int zero, int64_t microbatch) {
  DegreePlanOptions options;
  options.degrees = degrees;
  options.zero = zero;
  options.microbatch = microbatch;
  options.sequence_parallel = false;
  return lower_plan(graph, make_plan(graph, options));
}

}  // namespace

// Megatron's blocks: two all_reduce forward and two backward each.
BOOST_AUTO_TEST_CASE(every_split_block_sums_twice_forward_and_twice_backward) {
  auto all_reduces = [](int64_t layers) {
    GptShape shape;
    shape.layers = layers, shape.hidden = 32, shape.heads = 8, shape.vocabulary = 64, shape.batch = 8;
    shape.sequence = 8;
    const TrainingGraph graph = make_gpt_training(shape, DType::kF32);
    int count = 0;
    const Program program = programs_of(graph, {1, 4, 1}, 0, 8)[0];
    for (const TimetableEntry& entry : program.step)
      for (const Instruction& instruction : program.blocks[entry.block.index()].instructions)
        if (const auto* call = std::get_if<CollectiveInstruction>(&instruction.what))
          count += call->kind == CollectiveKind::kAllReduce && call->count >= 8 * 8 * 32;
    return count;
  };
  BOOST_TEST(all_reduces(3) - all_reduces(2) == 4);
  BOOST_TEST(all_reduces(5) - all_reduces(2) == 12);
}

}  // namespace altiplano::test
