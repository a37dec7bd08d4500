// Programs of plans against an independent GPT-2 (tests/golden/gpt2_reference.py): logits, ten losses, norms and all
// weights after ten AdamW steps, on one rank and under parallel plans, on device/reference in f64 and device/cpu in
// fp32.
#include <cmath>

#include "tests/support/golden_gpt.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/train.hpp"

namespace altiplano::test {

namespace {

/// The batches of the file: one per step; validation (step 1'000'000) sees the first.
class GoldenInput : public InputSource {
 public:
  GoldenInput(const TrainingGraph& graph, const GptReference& golden, int64_t step)
      : graph_(graph), batch_(golden.batches[step > 10 ? 0 : static_cast<size_t>(step - 1)]) {}
  Status fill(ValueId input, const Box& box, void* destination) override {
    const auto& ids = input == graph_.inputs[0] ? batch_.tokens : batch_.labels;
    int64_t sequence = graph_.graph.value(input).shape[1];
    auto* out = static_cast<int32_t*>(destination);
    for (int64_t b = 0; b < box.extents[0]; ++b)
      for (int64_t s = 0; s < box.extents[1]; ++s)
        *out++ = ids[static_cast<size_t>((box.origin[0] + b) * sequence + box.origin[1] + s)];
    return Status::ok();
  }

 private:
  const TrainingGraph& graph_;
  const GoldenBatch& batch_;
};

struct Parity {
  GptReference golden = read_gpt_reference();
  TrainingGraph graph;
  std::map<std::string, std::vector<double>> start;
  TrainOptions options;

  Parity(DType dtype, const std::string& device) : graph(golden_training(golden, dtype)) {
    options.device = device;
    options.learning_rate = golden.config.at("learning_rate");
    options.clip = golden.config.at("clip");
    options.input = [this](int64_t step) { return std::make_unique<GoldenInput>(graph, golden, step); };
    TrainOptions none = options;
    none.steps = 0;
    start = train(graph, plan({1, 1, 1}, 4), none).initial;  // states are zero
    for (const auto& [name, tensor] : golden.initial) start.at(name) = tensor.elements;
    options.start = &start;
  }

  Plan plan(Degrees degrees, int64_t microbatch) const {
    DegreePlanOptions o;
    o.degrees = degrees;
    o.microbatch = microbatch;
    auto made = plan_from_degrees(graph, test_cluster(degrees.num_ranks()), o);
    BOOST_REQUIRE_MESSAGE(made.is_ok(), made.status().to_string());
    // 37 rows are too few for the tensor-parallel rule on four ranks: the specs are written out.
    for (const char* text :
         {"block.*.mlp.up.weight=[-, {tensor}]", "block.*.mlp.up.bias=[{tensor}]",
          "block.*.mlp.down.weight=[{tensor}, -]", "block.*.attention.qkv.weight=[-, -, {tensor}, -]",
          "block.*.attention.qkv.bias=[-, {tensor}, -]", "block.*.attention.out.weight=[{tensor}, -, -]",
          "embedding.token.weight=[{tensor}, -]"}) {
      std::string line = text;
      size_t at = line.find('=');
      made->sharding.emplace_back(line.substr(0, at), *ShardingSpec::parse(line.substr(at + 1)));
    }
    Status status = verify_plan(*made, graph);
    BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
    return std::move(made).value();
  }
};

const std::vector<std::pair<Degrees, int64_t>> kPlans = {{{1, 1, 1}, 4}, {{2, 1, 1}, 1}, {{1, 2, 1}, 2},
                                                         {{1, 1, 2}, 1}, {{2, 2, 2}, 1}, {{1, 4, 1}, 4}};

double largest_relative(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < b.size(); ++i) largest = std::max(largest, std::abs(a.at(i) / b[i] - 1));
  return largest;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_parity)

BOOST_AUTO_TEST_CASE(ten_steps_in_f64_equal_an_independent_gpt2_under_every_plan) {
  Parity parity(DType::kF64, "reference");
  std::map<std::string, std::vector<double>> final;
  for (const auto& [name, tensor] : parity.golden.final) final[name] = tensor.elements;
  for (const auto& [degrees, microbatch] : kPlans) {
    Plan plan = parity.plan(degrees, microbatch);
    TrainResult run = train(parity.graph, plan, parity.options);
    BOOST_TEST(largest_difference(run.losses, parity.golden.losses) < 1e-12, plan.to_yaml());
    BOOST_TEST(largest_relative(run.norms, parity.golden.gradient_norms) < 1e-11, plan.to_yaml());
    for (const auto& [name, weights] : final)
      BOOST_TEST(largest_difference(run.tensors.at(name), weights) < 1e-9, name << "\n" << plan.to_yaml());
  }
}

BOOST_AUTO_TEST_CASE(ten_steps_in_fp32_equal_an_independent_gpt2_under_every_plan) {
  Parity parity(DType::kF32, "cpu");
  for (const auto& [degrees, microbatch] : kPlans) {
    Plan plan = parity.plan(degrees, microbatch);
    TrainResult run = train(parity.graph, plan, parity.options);
    BOOST_TEST(largest_difference(run.losses, parity.golden.losses) < 1e-5, plan.to_yaml());
    BOOST_TEST(largest_relative(run.norms, parity.golden.gradient_norms) < 1e-4, plan.to_yaml());
  }
}

BOOST_AUTO_TEST_CASE(logits_equal_those_of_an_independent_gpt2_under_every_plan) {
  for (auto [dtype, device] : {std::pair{DType::kF64, "reference"}, {DType::kF32, "cpu"}}) {
    Parity parity(dtype, device);
    parity.options.steps = 0;
    parity.options.validate = parity.options.fetch_logits = true;
    for (const auto& [degrees, microbatch] : kPlans) {
      Plan plan = parity.plan(degrees, 4 / degrees.data);  // one microbatch holds the whole batch
      TrainResult run = train(parity.graph, plan, parity.options);
      std::vector<double> logits(run.logits.begin(), run.logits.end());
      BOOST_TEST(largest_difference(logits, parity.golden.logits.elements) < 1e-5, to_string(dtype) << "\n"
                                                                                                    << plan.to_yaml());
      BOOST_TEST(std::abs(run.validation_loss - parity.golden.losses[0]) < 1e-5);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
