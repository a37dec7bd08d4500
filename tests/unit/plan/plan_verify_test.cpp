// What the plan verifier refuses, with the numbers.
#include <boost/test/unit_test.hpp>

#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

const TrainingGraph& small_graph() {
  static const TrainingGraph graph = [] {
    GptShape shape;
    shape.layers = 4, shape.hidden = 8, shape.heads = 4, shape.batch = 12, shape.vocabulary = 64;
    return make_gpt_training(shape);
  }();
  return graph;
}

Plan good_plan() {
  DegreePlanOptions options;
  options.degrees = {2, 2, 2};
  options.microbatch = 2;
  return make_plan(small_graph(), options);
}

template <typename Change>
std::string refusal_after(Change change) {
  Plan plan = good_plan();
  change(plan);
  return verify_plan(plan, small_graph()).message();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_verify)

BOOST_AUTO_TEST_CASE(a_good_plan_passes) {
  BOOST_TEST(refusal_after([](Plan&) {}) == "");
}

BOOST_AUTO_TEST_CASE(a_plan_of_another_graph_is_refused) {
  std::string message = refusal_after([](Plan& p) { p.graph_fingerprint = 1; });
  BOOST_TEST(message.starts_with("plan is for model gpt with fingerprint 0000000000000001, the job's model gpt has "));
  BOOST_TEST(refusal_after([](Plan& p) { p.compute_dtype = DType::kF32; }) == "plan computes in f32, the job in f64");
}

BOOST_AUTO_TEST_CASE(layers_must_all_stand_once_in_order) {
  BOOST_TEST(refusal_after([](Plan& p) { p.stages.clear(); }) == "plan has no stages");
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[1].layers.clear(); }) == "plan stage s1 has no layers");
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[1].layers.pop_back(); }) == "plan puts layer head on no stage");
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[1].layers.push_back("head"); }) == "plan names layer head twice");
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[0].layers[1] = "block.9"; }) ==
             "plan names layer block.9, the model has: embedding, block.0, block.1, block.2, block.3, head");
  BOOST_TEST(refusal_after([](Plan& p) { std::swap(p.stages[0].layers[1], p.stages[0].layers[2]); }) ==
             "plan has layer block.1 where the model's order has block.0; stages take contiguous layers in order");
}

BOOST_AUTO_TEST_CASE(slots_and_meshes_must_match) {
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[0].slots.pop_back(); }) ==
             "plan stage s0 has mesh {data: 2, tensor: 2} of 4 devices and 3 slots; list one slot per device");
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[1].slots[0] = SlotId(0); }) ==
             "plan stage s1 uses slot 0, which stage s0 has");
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[1].slots[0] = p.stages[1].slots[1]; }) ==
             "plan stage s1 uses slot 5 twice");
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[1].name = "s0"; }) == "two stages are named s0");
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[1].slots[3] = SlotId(9); }) ==
             "plan has 8 slots and does not use slot 7");
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[0].mesh.axes[1].first = Axis::kExpert; }) ==
             "plan stage s0: axis expert cannot be run yet; valid: data, tensor");
  BOOST_TEST(refusal_after([](Plan& p) {
               p.stages[1].mesh.axes = {{Axis::kData, 1}, {Axis::kTensor, 4}};
             }) == "plan stage s1 has data degree 1, stage s0 has 2; all stages need the same");
  BOOST_TEST(refusal_after([](Plan& p) { p.stages[0].zero = 4; }) == "plan stage s0: zero 4 is not one of 0, 1, 2, 3");
  BOOST_TEST(refusal_after([](Plan& p) { p.chunks = 2; }) == "plan has 2 chunks; schedules that exist take 1");
}

BOOST_AUTO_TEST_CASE(a_degree_of_zero_or_less_is_refused) {
  BOOST_TEST(refusal_after([](Plan& p) {
               p.stages[0].mesh.axes[1].second = 0;
               p.stages[0].slots.clear();
             }) == "plan stage s0: degree 0 of axis tensor must be at least 1");
}

BOOST_AUTO_TEST_CASE(an_axis_named_twice_is_refused) {
  BOOST_TEST(refusal_after([](Plan& p) {
               p.stages[0].mesh.axes = {{Axis::kData, 2}, {Axis::kData, 2}};
             }) == "plan stage s0 names axis data twice");
}

BOOST_AUTO_TEST_CASE(batch_arithmetic_must_be_exact) {
  BOOST_TEST(refusal_after([](Plan& p) { p.global_batch = 16; }) == "plan has global batch 16, the job has 12");
  BOOST_TEST(refusal_after([](Plan& p) { p.microbatch = 5; }) ==
             "plan: microbatch 5 x microbatches 3 x data 2 = 30, the global batch is 12");
  BOOST_TEST(refusal_after([](Plan& p) { p.num_microbatches = 0; }) ==
             "plan has microbatch 2 x 0 microbatches; both must be at least 1");
}

BOOST_AUTO_TEST_CASE(specs_must_fit_their_parameters) {
  auto with = [](const char* name, const char* spec) {
    return refusal_after([&](Plan& p) { p.sharding.insert(p.sharding.begin(), {name, *ShardingSpec::parse(spec)}); });
  };
  BOOST_TEST(with("head.ln.wieght", "[-]") == "plan, sharding: 'head.ln.wieght' matches no parameter of the model");
  BOOST_TEST(with("head.ln.weight", "[-] sum{tensor}") ==
             "plan, sharding of head.ln.weight: a parameter cannot be stored partial");
  BOOST_TEST(with("head.ln.*", "[-, {tensor}]") == "sharding [-, {tensor}] has 2 dims, the tensor [8] has 1");
}

BOOST_AUTO_TEST_CASE(strategies_and_stored_specs_must_be_possible_where_they_are_said) {
  auto strategy = [](const std::string& pattern, const std::string& text) {
    return refusal_after([&](Plan& p) { p.strategies = {{pattern, text}}; });
  };
  BOOST_TEST(strategy("block.*.mlp.up.product", "data:b tensor:f") == "");
  BOOST_TEST(strategy("blok.*", "data:b") ==
             "'blok.*' matches no op of the model as this device fuses it; make the plan anew for this device");
  BOOST_TEST(strategy("block.0.mlp.up.product", "data:b tensor:q")
                 .find("there is no factor q; the rule is [b,s,d] [d,f] -> "
                       "[b,s,f]  sum: d (op matmul block.0.mlp.up.product)") != std::string::npos);
  BOOST_TEST(strategy("block.0.mlp.up.product", "rows:b").find("'rows:b' is no axis:factor") != std::string::npos);
  BOOST_TEST(strategy("block.0.mlp.up.product", "data:b data:s").find("axis data stands twice") != std::string::npos);
  BOOST_TEST(strategy("block.0.ln1", "tensor:e").find("not allowed on mesh {data: 2, tensor: 2}") != std::string::npos);
  auto stored = [](const std::string& pattern, const std::string& spec) {
    return refusal_after([&](Plan& p) { p.stored = {{pattern, ShardingSpec::parse(spec).value()}}; });
  };
  BOOST_TEST(stored("block.*.mlp.down.product", "[{data}, {tensor}, -]") == "");
  BOOST_TEST(stored("block.0.mlp.down.product", "[{data}, -]") ==
             "sharding [{data}, -] has 2 dims, the tensor [12,4,8] has 3 (value block.0.mlp.down.product)");
  BOOST_TEST(stored("block.0.mlp.down.product", "[{data}, -, -] sum{tensor}") ==
             "block.0.mlp.down.product cannot be kept partial");
  BOOST_TEST(stored("mlp", "[-]") ==
             "'mlp' matches no activation of the model as this device fuses it; make the plan anew for this device");
}

BOOST_AUTO_TEST_CASE(what_a_file_says_wrong_is_named_by_its_line) {
  std::string text = good_plan().to_yaml();
  size_t at = text.find("slots: \"4-7\"");
  BOOST_REQUIRE(at != std::string::npos);
  auto plan = Plan::from_yaml(text.replace(at, 12, "slots: \"4-6,3\""), "plan.yaml");
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().message());
  const std::string message = verify_plan(*plan, small_graph()).message();
  BOOST_TEST(message.starts_with("plan.yaml:11:"), message);
  BOOST_TEST(message.ends_with(": stages[1].slots: plan stage s1 uses slot 3, which stage s0 has"), message);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
