// The planner plugins through the registry: manual and heuristic, and what they say when nothing fits.
#include <boost/test/unit_test.hpp>

#include "framework/config/job_config.hpp"
#include "framework/simulate/plan_estimate.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

const TrainingGraph& graph() {
  static const TrainingGraph graph = [] {
    GptShape shape;
    shape.layers = 4, shape.hidden = 16, shape.heads = 4, shape.vocabulary = 64, shape.batch = 16, shape.sequence = 8;
    return make_gpt_training(shape, DType::kF32);
  }();
  return graph;
}

const PlannerServices& services() {
  static const PlannerServices services = {
      [](const Plan& plan) -> Result<PlanEstimate> {
        return estimate_plan(graph(), plan, test_cluster(plan.num_slots()), make_timetable(plan));
      },
      [](const std::string& name) { return PluginRegistry::instance().schedule(name); }};
  return services;
}

/// Request over `ranks` with these keys of the `parallel` section.
struct Request {
  explicit Request(int ranks, const std::vector<std::pair<std::string, OptionValue>>& keys = {},
                   Bytes memory = Bytes(int64_t{1} << 30))
      : cluster(test_cluster(ranks)) {
    Options options(job_option_records());
    for (const auto& [key, value] : keys) {
      Status status = options.set("parallel." + key, value, {});
      BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
    }
    value.graph = &graph();
    value.cluster = &cluster;
    value.services = &services();
    value.options = options.section("parallel");
    value.num_ranks = ranks;
    value.global_batch = 16;
    value.memory_per_rank = memory;
  }
  Cluster cluster;
  PlanRequest value;
};

Result<Plan> plan_with(const std::string& planner, const PlanRequest& request) {
  auto found = PluginRegistry::instance().planner(planner);
  BOOST_REQUIRE_MESSAGE(found.is_ok(), found.status().to_string());
  ALTIPLANO_ASSIGN(Plan plan, (*found)->stages()->plan_stages(request));
  ALTIPLANO_RETURN_IF_ERROR((*found)->sharding()->plan_sharding(request, plan));
  ALTIPLANO_RETURN_IF_ERROR(verify_plan(plan, graph()));
  return plan;
}

std::string degrees_of(const Plan& plan) {
  return fmt::format("{} stages of {}", plan.stages.size(), plan.stages[0].mesh.to_string());
}

Bytes peak_of(const Plan& plan) {
  auto estimate = services().estimate(plan);
  BOOST_REQUIRE_MESSAGE(estimate.is_ok(), estimate.status().to_string());
  return *std::max_element(estimate->peak_per_rank.begin(), estimate->peak_per_rank.end());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(planners)

BOOST_AUTO_TEST_CASE(manual_takes_the_degrees_and_derives_the_rest) {
  gpt_plugin();
  auto plan = plan_with(
      "manual", Request(8, {{"tensor_parallel_size", int64_t{2}}, {"pipeline_parallel_size", int64_t{2}}}).value);
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
  BOOST_TEST(degrees_of(*plan) == "2 stages of {data: 2, tensor: 2}");
  BOOST_TEST(plan->planner == "planner/manual");
  BOOST_TEST(plan->stages[0].zero == 1);
  BOOST_TEST(!plan->sharding.empty());
  BOOST_TEST(plan->predicted.peak_memory.size() == 2u);
}

BOOST_AUTO_TEST_CASE(manual_counts_stages_of_a_split) {
  auto plan = plan_with("manual", Request(2, {{"pipeline.split", std::vector<int64_t>{1, 3}}}).value);
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
  BOOST_TEST((plan->stages[0].layers == std::vector<std::string>{"embedding", "block.0"}));
}

BOOST_AUTO_TEST_CASE(manual_refuses_degrees_that_do_not_make_the_ranks) {
  BOOST_TEST(plan_with("manual", Request(6, {{"tensor_parallel_size", int64_t{4}}}).value).status().message() ==
             "parallel.tensor_parallel_size: tensor_parallel_size 4 x pipeline_parallel_size 1 = 4 does not divide 6 "
             "ranks; start it with -n 4 or a multiple (`altiplano launch -n 4` trains), or use smaller degrees");
  BOOST_TEST(plan_with("manual", Request(4, {{"data_parallel_size", int64_t{3}}}).value).status().message() ==
             "parallel.data_parallel_size: data 3 x tensor 1 x pipeline 1 = 3 ranks, the job has 4; start it with -n 3 "
             "(`altiplano launch -n 3` trains), or use other degrees");
}

BOOST_AUTO_TEST_CASE(heuristic_uses_data_alone_while_memory_allows) {
  auto plan = plan_with("heuristic", Request(4).value);
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
  BOOST_TEST(degrees_of(*plan) == "1 stages of {data: 4, tensor: 1}");
}

BOOST_AUTO_TEST_CASE(heuristic_splits_the_model_only_as_far_as_memory_needs) {
  Plan alone = *plan_with(
      "heuristic", Request(4, {{"tensor_parallel_size", int64_t{1}}, {"pipeline_parallel_size", int64_t{1}}}).value);
  Request unlimited(4);
  unlimited.value.microbatch = 1;
  Bytes most = peak_of(*plan_with("heuristic", unlimited.value));
  Request tight(4, {}, most - Bytes(1));
  tight.value.microbatch = 1;
  auto plan = plan_with("heuristic", tight.value);
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
  BOOST_TEST(degrees_of(*plan) != degrees_of(alone));
  BOOST_TEST((peak_of(*plan) <= most - Bytes(1)));
}

BOOST_AUTO_TEST_CASE(heuristic_keeps_the_degrees_the_user_fixed) {
  auto plan = plan_with(
      "heuristic", Request(8, {{"tensor_parallel_size", int64_t{2}}, {"pipeline_parallel_size", int64_t{2}}}).value);
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
  BOOST_TEST(degrees_of(*plan) == "2 stages of {data: 2, tensor: 2}");
  BOOST_TEST(plan_with("heuristic", Request(6, {{"tensor_parallel_size", int64_t{4}}}).value).status().message() ==
             "parallel.tensor_parallel_size: 4 does not divide 6 ranks; start it with -n 4 or a multiple "
             "(`altiplano launch -n 4` trains), or let the planner choose");
}

BOOST_AUTO_TEST_CASE(equal_requests_give_equal_plans) {
  for (const char* planner : {"manual", "heuristic"})
    BOOST_TEST(plan_with(planner, Request(4).value)->to_yaml() == plan_with(planner, Request(4).value)->to_yaml());
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_names_the_smallest_change_that_would) {
  std::vector<std::pair<std::string, OptionValue>> without_zero = {{"zero_stage", int64_t{0}}};
  Request request(2, without_zero);
  request.value.microbatch = 8;
  Bytes needed = peak_of(*plan_with("manual", request.value));
  Request tight(2, without_zero, needed - Bytes(1));
  tight.value.microbatch = 8;
  auto plan = plan_with("manual", tight.value);
  BOOST_REQUIRE(!plan.is_ok());
  BOOST_TEST(static_cast<int>(plan.status().code()) == static_cast<int>(StatusCode::kInfeasible));
  BOOST_TEST(exit_code_of(plan.status().code()) == 3);
  std::string message = plan.status().message();
  BOOST_TEST(message.starts_with("no feasible plan: rank "), message);
  BOOST_TEST(message.find("(weights ") != std::string::npos, message);
  BOOST_TEST(message.find("Smallest change that fits:\n    parallel.zero_stage: 1 ") != std::string::npos, message);
  Request changed(2, {}, needed - Bytes(1));
  changed.value.microbatch = 8;
  BOOST_TEST(plan_with("manual", changed.value).is_ok());  // the advice is true
}

BOOST_AUTO_TEST_CASE(what_can_never_fit_says_how_far_was_searched) {
  auto plan = plan_with("heuristic", Request(1, {}, Bytes(100)).value);
  BOOST_REQUIRE(!plan.is_ok());
  BOOST_TEST(
      plan.status().message().ends_with("No change of microbatch, ZeRO stage, degrees or up to 8 ranks would fit."),
      plan.status().message());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
