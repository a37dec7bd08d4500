// The planner plugins through the registry: manual and heuristic, and what they say when nothing fits.
#include <boost/test/unit_test.hpp>

#include "framework/config/job_config.hpp"
#include "framework/simulate/plan_estimate.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/sanitized.hpp"

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
      [](const std::string& name) { return PluginRegistry::instance().schedule(name); },
      [](const Plan& plan) -> Result<PlanEstimate> {
        LoweringOptions options;
        options.only_first_of_stage = true;
        return estimate_plan(graph(), plan, test_cluster(plan.num_slots()), make_timetable(plan), options);
      }};
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
    if (value.options.has("zero_stage")) value.zero = static_cast<int>(value.options.get_int("zero_stage"));
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

BOOST_AUTO_TEST_CASE(deepspeed_raises_the_zero_stage_as_far_as_memory_needs) {
  auto peak_at = [&](int64_t zero) {
    Request request(4, {{"zero_stage", zero}});
    request.value.microbatch = 1;
    return peak_of(*plan_with("deepspeed", request.value));
  };
  BOOST_TEST((peak_at(3) < peak_at(2)));
  BOOST_TEST((peak_at(2) < peak_at(1)));
  for (int64_t zero : {1, 2, 3}) {
    Request tight(4, {}, peak_at(zero));
    tight.value.microbatch = 1;
    auto plan = plan_with("deepspeed", tight.value);
    BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
    BOOST_TEST(plan->stages[0].zero == zero);
    BOOST_TEST(degrees_of(*plan) == "1 stages of {data: 4, tensor: 1}");
  }
}

BOOST_AUTO_TEST_CASE(fsdp_splits_everything_over_replicas_and_keeps_given_degrees) {
  auto plan = plan_with("fsdp", Request(4, {{"tensor_parallel_size", int64_t{2}}}).value);
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
  BOOST_TEST(plan->stages[0].zero == 3);
  BOOST_TEST(degrees_of(*plan) == "1 stages of {data: 2, tensor: 2}");
  BOOST_TEST(plan_with("fsdp", Request(4, {{"zero_stage", int64_t{1}}}).value).status().message() ==
             "parallel.zero_stage: 1: planner/fsdp splits parameters too, which is stage 3; leave it out or use "
             "planner/deepspeed");
}

BOOST_AUTO_TEST_CASE(planners_of_replicas_refuse_degrees_that_do_not_make_the_ranks) {
  for (const char* planner : {"deepspeed", "fsdp"}) {
    BOOST_TEST(plan_with(planner, Request(4, {{"tensor_parallel_size", int64_t{3}}}).value).status().message() ==
               "parallel.tensor_parallel_size: 3 does not divide 4 ranks; start it with -n 3 or a multiple (`altiplano "
               "launch -n 3` trains), or let the planner choose");
    BOOST_TEST(plan_with(planner, Request(4, {{"data_parallel_size", int64_t{2}}}).value).status().message() ==
               "parallel.data_parallel_size: 2 does not make 4 ranks; planner/deepspeed and planner/fsdp make every "
               "rank a replica; give tensor_parallel_size or pipeline_parallel_size too, or leave it out");
  }
}

BOOST_AUTO_TEST_CASE(equal_requests_give_equal_plans) {
  for (const char* planner : {"manual", "heuristic", "dp", "deepspeed", "fsdp"})
    BOOST_TEST(plan_with(planner, Request(4).value)->to_yaml() == plan_with(planner, Request(4).value)->to_yaml());
}

BOOST_AUTO_TEST_CASE(dp_keeps_what_the_user_fixed) {
  auto degrees =
      plan_with("dp", Request(8, {{"tensor_parallel_size", int64_t{2}}, {"pipeline_parallel_size", int64_t{2}}}).value);
  BOOST_REQUIRE_MESSAGE(degrees.is_ok(), degrees.status().to_string());
  BOOST_TEST(degrees_of(*degrees) == "2 stages of {data: 2, tensor: 2}");
  auto split = plan_with("dp", Request(2, {{"pipeline.split", std::vector<int64_t>{1, 3}}}).value);
  BOOST_REQUIRE_MESSAGE(split.is_ok(), split.status().to_string());
  BOOST_TEST((split->stages[0].layers == std::vector<std::string>{"embedding", "block.0"}));
  Request sizes(4, {{"schedule", std::string("gpipe")}, {"zero_stage", int64_t{0}}});
  sizes.value.microbatch = 2;
  auto plan = plan_with("dp", sizes.value);
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
  BOOST_TEST(plan->schedule == "gpipe");
  BOOST_TEST(plan->microbatch == 2);
  BOOST_TEST(plan->stages[0].zero == 0);
  BOOST_TEST(
      plan_with("dp", Request(6, {{"tensor_parallel_size", int64_t{4}}}).value).status().message() ==
      "parallel.tensor_parallel_size: 4 does not divide 6 ranks; start it with -n 4 or a multiple (`altiplano launch "
      "-n 4` trains), or let the planner choose");
}

// The rules' own answers are not among the candidates.
BOOST_AUTO_TEST_CASE(dp_is_predicted_no_slower_than_the_rules_for_any_memory) {
  auto rules = plan_with("heuristic", Request(4).value);
  BOOST_REQUIRE(rules.is_ok());
  const Bytes most = peak_of(*rules);
  int num_shares = 0;
  for (double share : {4.0, 1.1, 0.7, 0.5, 0.35}) {
    if (num_shares++ % every(3) != 0) continue;
    const Bytes memory(static_cast<int64_t>(share * static_cast<double>(most.value)));
    auto by_rules = plan_with("heuristic", Request(4, {}, memory).value);
    auto searched = plan_with("dp", Request(4, {}, memory).value);
    BOOST_TEST_CONTEXT(to_string(memory)) {
      if (by_rules.is_ok()) BOOST_REQUIRE_MESSAGE(searched.is_ok(), searched.status().to_string());
      if (!searched.is_ok()) continue;
      BOOST_TEST((peak_of(*searched) <= memory));
      if (by_rules.is_ok())
        BOOST_TEST(services().estimate(*searched)->prediction.step.value <=
                   1.005 * services().estimate(*by_rules)->prediction.step.value);
    }
  }
}

BOOST_AUTO_TEST_CASE(too_little_memory_for_any_sharding_is_told_with_what_lacks) {
  const Status dp = plan_with("dp", Request(2, {}, Bytes(4096)).value).status();
  BOOST_TEST((dp.code() == StatusCode::kInfeasible), dp.to_string());
  Plan plan = *plan_with("manual", Request(2).value);
  plan.sharding.clear();
  auto ilp = PluginRegistry::instance().planner("ilp");
  BOOST_REQUIRE(ilp.is_ok());
  BOOST_TEST(((*ilp)->stages() == nullptr));
  const Status status = (*ilp)->sharding()->plan_sharding(Request(2, {}, Bytes(4096)).value, plan);
  BOOST_TEST((status.code() == StatusCode::kInfeasible), status.to_string());
  BOOST_TEST(status.message().starts_with("no feasible plan: whatever the sharding, a rank needs "), status.message());
}

BOOST_AUTO_TEST_CASE(ilp_keeps_the_storage_that_the_job_file_gives) {
  Request request(
      4, {{"sharding", StringMap{{"block.*.mlp.up.weight", "[{tensor}, -]"}}}, {"tensor_parallel_size", int64_t{2}}});
  Plan plan = *plan_with("manual", Request(4, {{"tensor_parallel_size", int64_t{2}}}).value);
  plan.sharding.clear();
  auto ilp = PluginRegistry::instance().planner("ilp");
  BOOST_REQUIRE(ilp.is_ok());
  const Status status = (*ilp)->sharding()->plan_sharding(request.value, plan);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  for (int i = 0; i < 4; ++i) {
    const ShardingSpec* spec = plan.find_spec(fmt::format("block.{}.mlp.up.weight", i));
    BOOST_REQUIRE(spec != nullptr);
    BOOST_TEST(spec->to_string() == "[{tensor}, -]");
  }
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
