// Once it is warm, a step allocates nothing: neither the executor, nor the communicator, nor the device's kernels.
#include <boost/test/unit_test.hpp>

#include "tests/support/counted_new.hpp"
#include "tests/support/invariance.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

/// Counts while it lives, which is while its step runs.
class CountedInput final : public SyntheticInput {
 public:
  CountedInput(const TrainingGraph& graph, int64_t step, bool counts) : SyntheticInput(graph, step) {
    count_allocations(counts);
  }
  ~CountedInput() override { count_allocations(false); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_warm_step_allocates_nothing) {
  if (!kCanCountAllocations) return;
  for (const char* device : {"reference", "cpu"}) {
    for (const Degrees& degrees : {Degrees{1, 1, 1}, {2, 2, 1}, {1, 1, 2}}) {
      PlanCase c;
      c.degrees = degrees;
      // One microbatch: no stage runs ahead of the next one, whose memory for early messages grows with how far it
      // does.
      c.microbatch = 24 / degrees.data;
      c.zero = degrees.data > 1 ? 1 : 0;
      c.fused = std::string(device) == "cpu";
      const TrainingGraph& graph = graph_of(c, DType::kF32);
      reset_allocations();
      TrainOptions options;
      options.device = device;
      options.steps = 5;
      options.input = [&graph](int64_t step) { return std::make_unique<CountedInput>(graph, step, step > 3); };
      train(graph, plan_of(c, graph), options);
      BOOST_TEST(num_allocations() == 0, device << ": " << num_allocations() << " times" << first_allocation());
    }
  }
}
