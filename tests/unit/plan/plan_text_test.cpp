// A plan is a text file that people read: it prints and parses back, and what is wrong in it is named by line and key.
#include <boost/test/unit_test.hpp>

#include "framework/base/text.hpp"
#include "framework/plan/plan.hpp"

using namespace altiplano;

namespace {

Plan sample_plan() {
  Plan plan;
  plan.model_name = "gpt";
  plan.graph_fingerprint = 0x0123456789abcdef;
  plan.cluster_shape = "1 node x 6 cpu";
  plan.cluster_fingerprint = 42;
  plan.global_batch = 24, plan.microbatch = 3, plan.num_microbatches = 4;
  plan.schedule = "gpipe";
  plan.compute_dtype = DType::kBF16;
  plan.sequence_parallel = true;
  plan.planner = "planner/manual";
  plan.stages = {{"s0",
                  {"embedding", "block.0", "block.1", "block.2"},
                  {SlotId(0), SlotId(1), SlotId(2), SlotId(4)},
                  {{{Axis::kData, 2}, {Axis::kTensor, 2}}},
                  1},
                 {"s1", {"block.3", "head"}, {SlotId(3), SlotId(5)}, {{{Axis::kData, 2}, {Axis::kTensor, 1}}}, 0}};
  plan.sharding = {{"block.*.mlp.up.weight", *ShardingSpec::parse("[-, {tensor}]")},
                   {"embedding.token.weight", *ShardingSpec::parse("[{tensor}, -]")}};
  return plan;
}

const std::string kText =
    "altiplano_plan: 1\n"
    "graph: {model: gpt, fingerprint: 0123456789abcdef}\n"
    "cluster: {shape: \"1 node x 6 cpu\", fingerprint: 000000000000002a}\n"
    "batch: {global: 24, microbatch: 3, microbatches: 4, replicas: 2}\n"
    "schedule: {kind: gpipe, chunks: 1}\n"
    "precision: {compute: bf16}\n"
    "sequence_parallel: true\n"
    "planner: planner/manual\n"
    "stages:\n"
    "  - {name: s0, layers: [embedding, block.0-2], slots: \"0-2,4\", mesh: {data: 2, tensor: 2}, zero: 1}\n"
    "  - {name: s1, layers: [block.3, head], slots: \"3,5\", mesh: {data: 2, tensor: 1}, zero: 0}\n"
    "sharding:\n"
    "  \"block.*.mlp.up.weight\": \"[-, {tensor}]\"\n"
    "  \"embedding.token.weight\": \"[{tensor}, -]\"\n";

std::string replaced(const std::string& what, const std::string& with) {
  std::string text = kText;
  size_t at = text.find(what);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, what);
  return text.replace(at, what.size(), with);
}

std::string refusal_of_text(const std::string& text) {
  auto plan = Plan::from_yaml(text, "plan.yaml");
  return plan.is_ok() ? "taken" : plan.status().message();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_plan_prints_as_people_read_it) {
  BOOST_TEST(sample_plan().to_yaml() == kText);
}

BOOST_AUTO_TEST_CASE(a_plan_parses_back_to_the_same_text) {
  auto parsed = Plan::from_yaml(kText, "plan.yaml");
  BOOST_REQUIRE_MESSAGE(parsed.is_ok(), parsed.status().to_string());
  BOOST_TEST(parsed->to_yaml() == kText);
  BOOST_TEST(parsed->stages[0].layers.size() == 4u);
  BOOST_TEST(parsed->stages[0].layers[3] == "block.2");
  BOOST_TEST((parsed->stages[1].slots == std::vector<SlotId>{SlotId(3), SlotId(5)}));
  BOOST_TEST(parsed->graph_fingerprint == 0x0123456789abcdefu);
}

BOOST_AUTO_TEST_CASE(predictions_are_kept) {
  Plan plan = sample_plan();
  plan.predicted.step = Seconds(0.25);
  plan.predicted.tokens_per_second = 1234;
  plan.predicted.bubble = 0.125;
  plan.predicted.peak_memory = {Bytes(1000), Bytes(77)};
  auto parsed = Plan::from_yaml(plan.to_yaml(), "plan.yaml");
  BOOST_REQUIRE_MESSAGE(parsed.is_ok(), parsed.status().to_string());
  BOOST_TEST(parsed->to_yaml() == plan.to_yaml());
  BOOST_TEST(parsed->predicted.peak_memory[1].value == 77);
}

BOOST_AUTO_TEST_CASE(a_kernel_table_is_a_section_of_the_plan) {
  Plan plan = sample_plan();
  plan.kernels = {"a cpu; 2 threads", {{"f32 64x32x16 nn", "sgemm"}, {"f32 64x32x16 nt", "turned_b"}}};
  BOOST_TEST(plan.to_yaml() == kText +
                                   "kernels:\n  machine: \"a cpu; 2 threads\"\n  forms:\n"
                                   "    \"f32 64x32x16 nn\": sgemm\n    \"f32 64x32x16 nt\": turned_b\n");
  auto parsed = Plan::from_yaml(plan.to_yaml(), "plan.yaml");
  BOOST_REQUIRE_MESSAGE(parsed.is_ok(), parsed.status().to_string());
  BOOST_TEST((parsed->kernels == plan.kernels));
  BOOST_TEST(parsed->where("kernels.forms.f32 64x32x16 nt") == "plan.yaml:19:5: kernels.forms.f32 64x32x16 nt: ");
  BOOST_TEST(refusal_of_text(kText + "kernels: {machine: a, forms: {x: y}, form: z}\n") ==
             "plan.yaml:15:38: kernels.form: unknown key; did you mean forms?");
  BOOST_TEST(refusal_of_text(kText + "kernels: {machine: a, forms: {x: y, x: z}}\n") ==
             "plan.yaml:15:37: kernels.forms.x: given twice");
  BOOST_TEST(refusal_of_text(kText + "kernels: {machine: a, forms: {x: [y]}}\n") ==
             "plan.yaml:15:34: kernels.forms.x: expected the name of a form");
  BOOST_TEST(refusal_of_text(kText + "kernels: {machine: a}\n") ==
             "plan.yaml:15:10: kernels.forms: missing, expected a map shape: form");
}

BOOST_AUTO_TEST_CASE(mistakes_in_a_plan_are_named_by_place_and_key) {
  BOOST_TEST(refusal_of_text(replaced("altiplano_plan: 1", "altiplano_plan: 2")) ==
             "plan.yaml:1:17: altiplano_plan: format 2, this version reads 1");
  BOOST_TEST(refusal_of_text(replaced("planner:", "planer:")) ==
             "plan.yaml:8:1: planer: unknown key; did you mean planner?");
  BOOST_TEST(refusal_of_text(replaced("bf16", "fp8")) ==
             "plan.yaml:6:22: precision.compute: 'fp8' is no floating type; valid: f32, bf16, f64");
  BOOST_TEST(refusal_of_text(replaced("sequence_parallel: true", "sequence_parallel: maybe")) ==
             "plan.yaml:7:20: sequence_parallel: expected true or false");
  BOOST_TEST(refusal_of_text(replaced("\"0-2,4\"", "\"0-2,x\"")) ==
             "plan.yaml:10:55: stages[0].slots: '0-2,x' is no list like 0-3,6");
  BOOST_TEST(refusal_of_text(replaced("{data: 2, tensor: 2}", "{daat: 2, tensor: 2}")) ==
             "plan.yaml:10:71: stages[0].mesh: 'daat' is no axis; expected one of data, tensor, expert, context");
  BOOST_TEST(refusal_of_text(replaced("microbatch: 3", "microbatch: 3, microbatch: 3")) ==
             "plan.yaml:4:36: batch.microbatch: given twice, first in line 4");
  BOOST_TEST(refusal_of_text(replaced("replicas: 2", "replicas: 3")) ==
             "plan.yaml:4:63: batch.replicas: 3, but stage s0 has data degree 2; make them equal");
  BOOST_TEST(refusal_of_text(replaced("zero: 0", "offload: 1, zero: 0"))
                 .ends_with("stages[1].offload: unknown key; known: name, layers, slots, mesh, zero, "
                            "recompute"));
  BOOST_TEST(refusal_of_text(replaced("microbatches: 4", "microbatches: 5000000000")) ==
             "plan.yaml:4:50: batch.microbatches: got 5000000000, expected an integer in [1, 65536]");
  BOOST_TEST(refusal_of_text(replaced("fingerprint: 0123456789abcdef", "fingerprint: -1")) ==
             "plan.yaml:2:34: graph.fingerprint: got -1, expected up to 16 hexadecimal digits");
}

BOOST_AUTO_TEST_CASE(places_of_what_was_read_are_kept) {
  auto plan = Plan::from_yaml(kText, "plan.yaml");
  BOOST_REQUIRE(plan.is_ok());
  BOOST_TEST(plan->where("stages[1].slots") == "plan.yaml:11:48: stages[1].slots: ");
  BOOST_TEST(plan->where("stages[0].layers[2]") == "plan.yaml:10:36: stages[0].layers[2]: ");
  BOOST_TEST(plan->where("nothing") == "plan.yaml: nothing: ");
  BOOST_TEST(sample_plan().where("stages[0].slots") == "");
}

BOOST_AUTO_TEST_CASE(damaged_plans_never_crash_and_never_pass_as_another) {
  for (size_t length = 0; length < kText.size(); ++length) {
    auto plan = Plan::from_yaml(kText.substr(0, length), "plan.yaml");
    if (plan.is_ok()) BOOST_TEST(kText.starts_with(plan->to_yaml().substr(0, 200)));
  }
  for (const std::string key : {"graph", "cluster", "batch", "schedule", "precision", "stages", "planner"}) {
    std::string text;
    for (const std::string& line : split(kText, '\n'))
      if (!line.starts_with(key + ":")) text += line + "\n";
    BOOST_TEST(refusal_of_text(text) != "taken", key);
  }
}
