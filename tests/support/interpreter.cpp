#include "tests/support/interpreter.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "framework/base/random.hpp"
#include "framework/plugin/registry.hpp"
#include "tests/support/documents.hpp"

namespace altiplano::test {
namespace {

template <typename T>
T require(Result<T> result) {
  BOOST_REQUIRE_MESSAGE(result.is_ok(), result.status().to_string());
  return std::move(result).value();
}

}  // namespace

std::unique_ptr<Device> open_device(const std::string& name) {
  auto& registry = PluginRegistry::instance();
  static const bool once = (registry.add_search_path(ALTIPLANO_TEST_PLUGIN_DIR), true);
  (void)once;
  return require(require(registry.device(name))->open({}));
}

std::vector<std::vector<double>> run_kernel(Device& device, const KernelRequest& request,
                                            const std::vector<std::vector<double>>& inputs, const StepScalars& step,
                                            int64_t batch_offset) {
  return require(conformance::run_kernel(conformance::kernels_of(device), request, inputs, step, batch_offset));
}

Values run_graph(Device& device, const Graph& graph, Values values, const RunOptions& options) {
  return require(conformance::run_graph(conformance::kernels_of(device), graph, std::move(values), options));
}

namespace {

void sum_contributions(const TrainingGraph& training, Values& values) {
  for (const ParameterTraining& entry : training.parameters) {
    std::vector<double> sum = values.at(entry.contributions[0]);
    for (size_t c = 1; c < entry.contributions.size(); ++c)
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += values.at(entry.contributions[c])[i];
    values[entry.gradient] = std::move(sum);
  }
}

double sum_of_squares(const TrainingGraph& training, const Values& values) {
  double total = 0;
  for (const ParameterTraining& entry : training.parameters)
    for (double g : values.at(entry.gradient)) total += g * g;
  return total;
}

/// New values of what the update ops write in place.
void take_updates(const TrainingGraph& training, const Values& values, Values& state) {
  const Graph& graph = training.graph;
  for (const ParameterTraining& entry : training.parameters) {
    const Op& update = graph.op(entry.update_ops[0]);
    state[update.inputs[0]] = values.at(update.outputs[0]);
    for (size_t i = 2; i < update.inputs.size(); ++i) state[update.inputs[i]] = values.at(update.outputs[i - 1]);
    state[entry.parameter] = values.at(entry.updated);
  }
}

}  // namespace

StepResult train_step(Device& device, const TrainingGraph& training, Values& state, const Values& batch, int64_t step,
                      double learning_rate, double max_norm) {
  Values values = state;
  values.insert(batch.begin(), batch.end());
  RunOptions options{{step, learning_rate, 1, true}, training.seed};
  values = run_graph(device, training.graph, std::move(values), options);
  sum_contributions(training, values);
  StepResult result{values.at(training.loss_sum)[0], values.at(training.token_count)[0], 0};
  result.gradient_norm = std::sqrt(sum_of_squares(training, values)) / result.token_count;
  options.step.gradient_scale = 1 / result.token_count;
  if (max_norm > 0) options.step.gradient_scale *= std::min(1.0, max_norm / result.gradient_norm);
  options.phases = {Phase::kUpdate};
  values = run_graph(device, training.graph, std::move(values), options);
  take_updates(training, values, state);
  return result;
}

Values random_batch(const TrainingGraph& training, int64_t vocabulary, uint64_t seed, int ignore_every) {
  Values batch;
  for (ValueId id : training.inputs) {
    const Value& value = training.graph.value(id);
    bool is_labels = id != training.inputs[0];
    std::vector<double> elements(static_cast<size_t>(num_elements(value.shape)));
    const auto length = static_cast<size_t>(value.shape.back());
    for (size_t i = 0; i < elements.size(); ++i) {
      if (value.name == kDocumentStartInput || value.name == kPositionsInput) {
        const auto position = static_cast<int64_t>(i % length);
        const int64_t start = synthetic_document_start(seed, i / length, position);
        elements[i] = static_cast<double>(value.name == kPositionsInput ? position - start : start);
        continue;
      }
      elements[i] = std::floor(random_uniform(random_stream(seed, value.name), 0, i) * static_cast<double>(vocabulary));
      if (is_labels && ignore_every > 0 && i % static_cast<size_t>(ignore_every) == 0) elements[i] = -1;
    }
    batch[id] = std::move(elements);
  }
  return batch;
}

}  // namespace altiplano::test
