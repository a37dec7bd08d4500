#include "tests/support/interpreter.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>

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

void require(const Status& status) {
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
}

uint16_t bf16_from(double value) {
  auto number = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &number, 4);
  bits += 0x7FFF + ((bits >> 16) & 1);  // to nearest even
  return static_cast<uint16_t>(bits >> 16);
}

double from_bf16(uint16_t half) {
  uint32_t bits = static_cast<uint32_t>(half) << 16;
  float number;
  std::memcpy(&number, &bits, 4);
  return number;
}

template <typename T>
void encode(const std::vector<double>& values, std::vector<std::byte>& bytes) {
  for (size_t i = 0; i < values.size(); ++i) {
    auto element = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
}

template <typename T>
void decode(const std::vector<std::byte>& bytes, std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(element);
  }
}

std::vector<std::byte> to_bytes(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(size_of(dtype)));
  switch (dtype) {
    case DType::kF64:
      encode<double>(values, bytes);
      break;
    case DType::kF32:
      encode<float>(values, bytes);
      break;
    case DType::kI32:
      encode<int32_t>(values, bytes);
      break;
    case DType::kI64:
      encode<int64_t>(values, bytes);
      break;
    case DType::kBF16:
      for (size_t i = 0; i < values.size(); ++i) {
        uint16_t half = bf16_from(values[i]);
        std::memcpy(bytes.data() + 2 * i, &half, 2);
      }
  }
  return bytes;
}

std::vector<double> from_bytes(DType dtype, const std::vector<std::byte>& bytes) {
  std::vector<double> values(bytes.size() / static_cast<size_t>(size_of(dtype)));
  switch (dtype) {
    case DType::kF64:
      decode<double>(bytes, values);
      break;
    case DType::kF32:
      decode<float>(bytes, values);
      break;
    case DType::kI32:
      decode<int32_t>(bytes, values);
      break;
    case DType::kI64:
      decode<int64_t>(bytes, values);
      break;
    case DType::kBF16:
      for (size_t i = 0; i < values.size(); ++i) {
        uint16_t half;
        std::memcpy(&half, bytes.data() + 2 * i, 2);
        values[i] = from_bf16(half);
      }
  }
  return values;
}

int64_t bytes_of(const OperandLayout& layout) {
  return num_elements(layout.extents) * size_of(layout.dtype);
}

/// Memory of a device for as long as the object lives.
class DeviceMemory {
 public:
  DeviceMemory(Device& device, int64_t bytes) : device_(device), memory_(require(device.allocate(bytes))) {}
  DeviceMemory(const DeviceMemory&) = delete;
  ~DeviceMemory() { device_.free(memory_); }
  void* get() const { return memory_; }

 private:
  Device& device_;
  void* memory_;
};

}  // namespace

std::unique_ptr<Device> open_device(const std::string& name) {
  auto& registry = PluginRegistry::instance();
  static const bool once = (registry.add_search_path(ALTIPLANO_TEST_PLUGIN_DIR), true);
  (void)once;
  return require(require(registry.device(name))->open({}));
}

OperandLayout whole_layout(DType dtype, const Shape& shape) {
  return {dtype, shape, std::vector<int64_t>(shape.size(), 0), shape, -1};
}

std::vector<std::vector<double>> run_kernel(Device& device, const KernelRequest& request,
                                            const std::vector<std::vector<double>>& inputs, const StepScalars& step,
                                            int64_t batch_offset) {
  auto kernel = require(device.make_kernel(request));
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    BOOST_REQUIRE_EQUAL(static_cast<int64_t>(inputs[i].size()), num_elements(request.inputs[i].extents));
    memory.push_back(std::make_unique<DeviceMemory>(device, bytes_of(request.inputs[i])));
    auto bytes = to_bytes(request.inputs[i].dtype, inputs[i]);
    require(device.copy_from_host(memory.back()->get(), bytes.data(), static_cast<int64_t>(bytes.size())));
    in.push_back(memory.back()->get());
  }
  for (const OperandLayout& layout : request.outputs) {
    memory.push_back(std::make_unique<DeviceMemory>(device, bytes_of(layout)));
    out.push_back(memory.back()->get());
  }
  DeviceMemory workspace(device, kernel->workspace_bytes());
  require(kernel->run({in, out, &step, batch_offset, workspace.get()}));
  std::vector<std::vector<double>> results;
  for (size_t i = 0; i < out.size(); ++i) {
    std::vector<std::byte> bytes(static_cast<size_t>(bytes_of(request.outputs[i])));
    require(device.copy_to_host(bytes.data(), out[i], static_cast<int64_t>(bytes.size())));
    results.push_back(from_bytes(request.outputs[i].dtype, bytes));
  }
  return results;
}

namespace {

void run_op(Device& device, const Graph& graph, const Op& op, Values& values, const RunOptions& options) {
  KernelRequest request{op.kind, op.attributes, {}, {}, options.seed};
  std::vector<std::vector<double>> inputs;
  for (ValueId id : op.inputs) {
    const Value& value = graph.value(id);
    BOOST_REQUIRE_MESSAGE(values.count(id), op.name << " needs '" << value.name << "', which has no value");
    request.inputs.push_back(whole_layout(value.dtype, value.shape));
    inputs.push_back(values.at(id));
  }
  for (ValueId id : op.outputs) request.outputs.push_back(whole_layout(graph.value(id).dtype, graph.value(id).shape));
  auto results = run_kernel(device, request, inputs, options.step);
  for (size_t i = 0; i < results.size(); ++i) values[op.outputs[i]] = std::move(results[i]);
}

}  // namespace

Values run_graph(Device& device, const Graph& graph, Values values, const RunOptions& options) {
  for (const Op& op : graph.ops())
    if (std::count(options.phases.begin(), options.phases.end(), op.phase)) run_op(device, graph, op, values, options);
  return values;
}

Values initial_values(const TrainingGraph& training) {
  const Graph& graph = training.graph;
  Values values;
  for (const Parameter& parameter : graph.parameters()) {
    const Value& value = graph.value(parameter.value);
    uint64_t stream = random_stream(training.seed, value.name);
    auto n = static_cast<size_t>(num_elements(value.shape));
    std::vector<double> elements(n);
    for (size_t i = 0; i < n; ++i) elements[i] = initial_element(parameter.init, stream, i);
    values[value.id] = from_bytes(value.dtype, to_bytes(value.dtype, elements));
    if (ValueId master = graph.find_value(value.name + ".master"); master.is_valid())
      values[master] = from_bytes(DType::kF32, to_bytes(DType::kF32, elements));
  }
  for (const Value& value : graph.values())
    if (value.role == Role::kOptimizerState && !values.count(value.id))
      values[value.id].assign(static_cast<size_t>(num_elements(value.shape)), 0.0);
  return values;
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
