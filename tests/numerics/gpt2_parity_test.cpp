// The GPT graph, run op by op on device/reference, against an independent GPT-2 (tests/golden/gpt2_reference.py):
// logits, first gradients, ten losses and norms, all weights after ten AdamW steps.
#include <cmath>

#include "tests/support/golden_gpt.hpp"
#include "tests/support/interpreter.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

Values golden_state(const TrainingGraph& training, const GptReference& golden) {
  Values state = initial_values(training);
  BOOST_REQUIRE_EQUAL(golden.initial.size(), training.graph.parameters().size());
  for (const auto& [name, tensor] : golden.initial) {
    ValueId id = training.graph.find_value(name);
    BOOST_REQUIRE_MESSAGE(id.is_valid() && training.graph.value(id).shape == tensor.shape, name);
    state[id] = tensor.elements;
  }
  return state;
}

Values golden_batch(const TrainingGraph& training, const GoldenBatch& batch) {
  return {{training.inputs[0], {batch.tokens.begin(), batch.tokens.end()}},
          {training.inputs[1], {batch.labels.begin(), batch.labels.end()}}};
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

void check_near(const std::string& what, const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  double difference = largest_difference(a, b);
  BOOST_CHECK_MESSAGE(difference <= tolerance, what << " differs by " << difference);
}

}  // namespace

BOOST_AUTO_TEST_CASE(logits_and_first_gradients_equal_an_independent_gpt2) {
  GptReference golden = read_gpt_reference();
  TrainingGraph training = golden_training(golden, DType::kF64);
  Values values = golden_state(training, golden);
  values.merge(golden_batch(training, golden.batches[0]));
  values = run_graph(*open_device(), training.graph, std::move(values));
  check_near("logits", values.at(training.logits), golden.logits.elements, 1e-12);
  double tokens = values.at(training.token_count)[0];
  for (const ParameterTraining& entry : training.parameters) {
    const std::string& name = training.graph.value(entry.parameter).name;
    std::vector<double> gradient(golden.gradients.at(name).elements.size());
    for (ValueId id : entry.contributions)
      for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += values.at(id)[i] / tokens;
    check_near("gradient of " + name, gradient, golden.gradients.at(name).elements, 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(ten_adamw_steps_equal_an_independent_gpt2) {
  struct Precision {
    const char* device;
    DType dtype;
    double loss, weight;
  };
  GptReference golden = read_gpt_reference();
  for (const Precision& p :
       {Precision{"reference", DType::kF64, 1e-12, 1e-9}, Precision{"reference", DType::kF32, 1e-5, INFINITY},
        Precision{"cpu", DType::kF32, 1e-5, INFINITY}}) {
    std::unique_ptr<Device> device = open_device(p.device);
    TrainingGraph training = golden_training(golden, p.dtype);
    Values state = golden_state(training, golden);
    for (size_t step = 0; step < golden.batches.size(); ++step) {
      StepResult result =
          train_step(*device, training, state, golden_batch(training, golden.batches[step]),
                     static_cast<int64_t>(step) + 1, golden.config.at("learning_rate"), golden.config.at("clip"));
      BOOST_CHECK_SMALL(result.loss_sum / result.token_count - golden.losses[step], p.loss);
      BOOST_CHECK_SMALL(result.gradient_norm / golden.gradient_norms[step] - 1, 10 * p.loss);
    }
    for (const auto& [name, tensor] : golden.final)
      check_near(name, state.at(training.graph.find_value(name)), tensor.elements, p.weight);
  }
}
