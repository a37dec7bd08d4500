// Plans from degrees: layer splits, batch arithmetic, slots.
#include "framework/plan/degrees.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <set>

#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

const TrainingGraph& deep_graph() {
  static const TrainingGraph graph = [] {
    GptShape shape;
    shape.layers = 30, shape.batch = 8;
    return make_gpt_training(shape);
  }();
  return graph;
}

std::vector<int64_t> blocks_per_stage(const std::vector<std::vector<std::string>>& stages) {
  std::vector<int64_t> counts;
  for (const auto& layers : stages)
    counts.push_back(
        std::count_if(layers.begin(), layers.end(), [](const std::string& l) { return l.starts_with("block."); }));
  return counts;
}

std::string split_refusal(int stages, const std::vector<int64_t>& split) {
  return split_layers(deep_graph().graph, stages, split).status().message();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(degrees)

// Field case P04: 30 layers on 4 stages became 7+7+7+7.
BOOST_AUTO_TEST_CASE(thirty_layers_on_four_stages_are_thirty_layers) {
  auto stages = split_layers(deep_graph().graph, 4, {});
  BOOST_REQUIRE_MESSAGE(stages.is_ok(), stages.status().to_string());
  std::vector<int64_t> counts = blocks_per_stage(*stages);
  BOOST_TEST(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == 30);
  BOOST_TEST(*std::max_element(counts.begin(), counts.end()) == 8);
  BOOST_TEST(*std::min_element(counts.begin(), counts.end()) == 7);
}

BOOST_AUTO_TEST_CASE(every_layer_stands_once_for_every_number_of_stages) {
  for (int n = 1; n <= 32; ++n) {
    auto stages = split_layers(deep_graph().graph, n, {});
    BOOST_REQUIRE_MESSAGE(stages.is_ok(), n << ": " << stages.status().to_string());
    std::vector<std::string> all;
    for (const auto& layers : *stages) {
      BOOST_TEST(!layers.empty());
      all.insert(all.end(), layers.begin(), layers.end());
    }
    BOOST_TEST((all == deep_graph().graph.layers()), n);
  }
}

BOOST_AUTO_TEST_CASE(an_explicit_split_counts_blocks_or_all_layers) {
  auto blocks = split_layers(deep_graph().graph, 3, {3, 20, 7});
  BOOST_REQUIRE(blocks.is_ok());
  BOOST_TEST((blocks_per_stage(*blocks) == std::vector<int64_t>{3, 20, 7}));
  BOOST_TEST(blocks->front().front() == "embedding");
  BOOST_TEST(blocks->back().back() == "head");
  auto all = split_layers(deep_graph().graph, 3, {1, 30, 1});
  BOOST_REQUIRE(all.is_ok());
  BOOST_TEST((blocks_per_stage(*all) == std::vector<int64_t>{0, 30, 0}));
}

BOOST_AUTO_TEST_CASE(wrong_splits_are_refused_with_the_numbers) {
  BOOST_TEST(split_refusal(3, {10, 20}) == "parallel.pipeline.split: 2 entries for pipeline_parallel_size 3");
  BOOST_TEST(split_refusal(2, {10, 19}) ==
             "parallel.pipeline.split: sum 29 is neither the model's 30 repeated layers nor all its 32 layers");
  BOOST_TEST(split_refusal(2, {-1, 33}) == "parallel.pipeline.split: -1 is negative");
  BOOST_TEST(split_refusal(3, {0, 16, 16}) == "parallel.pipeline.split: a stage would have no layers");
  BOOST_TEST(split_refusal(33, {}) == "parallel.pipeline_parallel_size: 33 stages for 32 layers; at most 32");
}

// Field case P01.
BOOST_AUTO_TEST_CASE(a_global_batch_that_does_not_divide_is_refused_with_the_nearest) {
  BOOST_TEST(
      check_batch(10, 2, 4).message() ==
      "train.global_batch_size: 10 is not a multiple of micro_batch_size 2 x data_parallel_size 4 = 8; nearest: 8, 16");
  BOOST_TEST(
      check_batch(3, 2, 4).message() ==
      "train.global_batch_size: 3 is not a multiple of micro_batch_size 2 x data_parallel_size 4 = 8; nearest: 8");
  BOOST_TEST(check_batch(16, 2, 4).is_ok());
}

// Field case P10: batch 8 in three microbatches was 3, 3, 2.
BOOST_AUTO_TEST_CASE(a_short_last_microbatch_is_refused) {
  BOOST_TEST(
      check_batch(8, 3, 1).message() ==
      "train.global_batch_size: 8 is not a multiple of micro_batch_size 3 x data_parallel_size 1 = 3; nearest: 6, 9");
  DegreePlanOptions options;
  options.microbatch = 3;
  BOOST_TEST(!plan_from_degrees(deep_graph(), test_cluster(1), options).is_ok());
}

// Field case P02: samples per step never depend on tensor or pipeline degree.
BOOST_AUTO_TEST_CASE(degrees_never_change_the_samples_of_a_step) {
  for (auto degrees : {Degrees{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 2}, {4, 1, 2}, {1, 2, 4}}) {
    DegreePlanOptions options;
    options.degrees = degrees;
    options.microbatch = 2;
    auto plan = plan_from_degrees(deep_graph(), test_cluster(degrees.num_ranks()), options);
    BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
    BOOST_TEST(plan->microbatch * plan->num_microbatches * plan->data_degree() == 8);
    BOOST_TEST(plan->num_slots() == degrees.num_ranks());
  }
}

BOOST_AUTO_TEST_CASE(consecutive_slots_share_a_tensor_group) {
  DegreePlanOptions options;
  options.degrees = {2, 2, 2};
  options.microbatch = 1;
  auto plan = plan_from_degrees(deep_graph(), test_cluster(8), options);
  BOOST_REQUIRE(plan.is_ok());
  for (int s = 0; s < 2; ++s) {
    const PlanStage& stage = plan->stages[static_cast<size_t>(s)];
    BOOST_TEST(stage.mesh.to_string() == "{data: 2, tensor: 2}");
    for (int i = 0; i < 4; ++i) BOOST_TEST(stage.slots[static_cast<size_t>(i)].value == 4 * s + i);
  }
}

// Field case P26: a tensor degree that does not divide the heads.
BOOST_AUTO_TEST_CASE(a_tensor_degree_that_does_not_divide_the_heads_is_refused_with_the_valid_ones) {
  GptShape shape;
  shape.hidden = 24, shape.heads = 12, shape.vocabulary = 257;
  TrainingGraph graph = make_gpt_training(shape);
  auto rules = rules_of(graph.graph);
  BOOST_REQUIRE(rules.is_ok());
  for (int degree : {1, 2, 3, 4, 6, 12}) BOOST_TEST(tensor_parallel_specs(graph.graph, *rules, degree).is_ok(), degree);
  for (int degree : {5, 8}) {
    auto specs = tensor_parallel_specs(graph.graph, *rules, degree);
    BOOST_REQUIRE(!specs.is_ok());
    BOOST_TEST(specs.status().message().find(fmt::format("{}", degree)) != std::string::npos, specs.status().message());
    BOOST_TEST(specs.status().message().find("1, 2, 3, 4, 6, 12") != std::string::npos, specs.status().message());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
