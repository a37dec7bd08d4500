// Golden results H: what ZeRO's stages leave on a rank, and a model that no stage fits into a node.
#include <boost/test/unit_test.hpp>

#include "framework/config/job_config.hpp"
#include "framework/simulate/fit.hpp"
#include "framework/simulate/plan_estimate.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/sanitized.hpp"

namespace altiplano::test {

namespace {

constexpr int64_t kGigabyte = 1000000000;

/// Parameters, gradients and optimizer state of the fullest rank of `ranks` replicas.
MemoryBreakdown states_of(const TrainingGraph& graph, int ranks, int zero) {
  DegreePlanOptions options;
  options.degrees = {ranks, 1, 1};
  options.microbatch = 1;
  options.zero = zero;
  const Plan plan = make_plan(graph, options);
  LoweringOptions first;
  first.only_first_of_stage = true;
  const auto programs = lower(graph, plan, make_timetable(plan), Binding::identity(ranks), first);
  BOOST_REQUIRE_MESSAGE(programs.is_ok(), programs.status().to_string());
  return memory_of((*programs)[0]);
}

}  // namespace

// 7.5 billion parameters over 64 devices at 2 + 2 + 12 bytes each (Rajbhandari et al., "ZeRO", 2020). Gradients are f32
// here, of 4 bytes, so what the published figures count of them is half of what the programs hold.
BOOST_AUTO_TEST_CASE(zero_stages_leave_the_published_bytes_on_a_rank) {
  gpt_plugin();
  GptShape shape;
  shape.layers = 36, shape.hidden = 4096, shape.heads = 32, shape.vocabulary = 51200, shape.batch = 64;
  shape.sequence = 128;
  const TrainingGraph graph = make_gpt_training(shape, DType::kBF16);
  int64_t num_parameters = 0;
  for (const Parameter& p : graph.graph.parameters()) num_parameters += num_elements(graph.graph.value(p.value).shape);
  const double to_published = 7.5e9 / static_cast<double>(num_parameters) / static_cast<double>(kGigabyte);
  const double published[] = {120, 31.4, 16.6, 1.9};
  for (int zero = 0; zero <= 3; ++zero) {
    const MemoryBreakdown memory = states_of(graph, 64, zero);
    const double bytes = static_cast<double>(memory.weights.value + memory.optimizer.value) +
                         static_cast<double>(memory.gradients.value) / 2;
    BOOST_TEST_CONTEXT("ZeRO stage " << zero) {
      BOOST_TEST(bytes * to_published == published[zero], boost::test_tools::tolerance(zero == 3 ? 0.03 : 0.01));
    }
  }
}

// 65.2 billion parameters on 8 x 80 GB (a LLaMA-65B of GPT's layers) at 16 bytes each: 130 GB a device, split as far as
// ZeRO goes.
BOOST_AUTO_TEST_CASE(sixty_five_billion_parameters_on_one_node_are_refused_with_what_they_need) {
  gpt_plugin();
  GptShape shape;
  shape.layers = 80, shape.hidden = 8192, shape.heads = 64, shape.vocabulary = 98304, shape.batch = 8;
  shape.sequence = 128;
  const TrainingGraph graph = make_gpt_training(shape, DType::kF32);
  const MemoryBreakdown memory = states_of(graph, 8, 3);
  const double states =
      static_cast<double>(memory.weights.value + memory.gradients.value + memory.optimizer.value) / kGigabyte;
  BOOST_TEST(states == 130.4, boost::test_tools::tolerance(0.01));

  const Cluster cluster = test_cluster(64);
  PlannerServices services;
  services.preview = services.estimate = [&](const Plan& plan) {
    LoweringOptions first;
    first.only_first_of_stage = true;
    return estimate_plan(graph, plan, cluster.resized(plan.num_slots()), make_timetable(plan), first);
  };
  services.schedule = [](const std::string& name) { return PluginRegistry::instance().schedule(name); };
  Options options(job_option_records());
  BOOST_REQUIRE(options.set("parallel.zero_stage", int64_t{3}, {}).is_ok());
  const Cluster node = cluster.resized(8);
  PlanRequest request;
  request.graph = &graph;
  request.cluster = &node;
  request.services = &services;
  request.options = options.section("parallel");
  request.zero = 3;
  request.num_ranks = 8;
  request.global_batch = 8;
  request.memory_per_rank = Bytes(80 * kGigabyte);
  for (const char* name : {"deepspeed", "fsdp", "dp"}) {
    const auto planner = PluginRegistry::instance().planner(name);
    BOOST_REQUIRE(planner.is_ok());
    const auto plan = (*planner)->stages()->plan_stages(request);
    BOOST_TEST_CONTEXT("planner/" << name) {
      BOOST_REQUIRE(!plan.is_ok());
      const std::string message = plan.status().to_string();
      BOOST_TEST((plan.status().code() == StatusCode::kInfeasible), message);
      BOOST_TEST(message.find("(weights ") != std::string::npos, message);
      BOOST_TEST(message.find(std::string(kSmallestChange)) != std::string::npos, message);
      BOOST_TEST(message.find("on 16 ranks") != std::string::npos, message);
    }
  }
}

}  // namespace altiplano::test
