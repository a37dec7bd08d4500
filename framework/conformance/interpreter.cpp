#include "framework/conformance/interpreter.hpp"

#include <algorithm>

#include "framework/base/random.hpp"
#include "framework/kernels/element.hpp"
#include "framework/runtime/device_buffers.hpp"

namespace altiplano::conformance {
namespace {

std::vector<std::byte> to_bytes(DType dtype, const std::vector<double>& values) {
  const auto size = static_cast<size_t>(size_of(dtype));
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) store_element(dtype, values[i], bytes.data() + i * size);
  return bytes;
}

std::vector<double> from_bytes(DType dtype, const std::vector<std::byte>& bytes) {
  const auto size = static_cast<size_t>(size_of(dtype));
  std::vector<double> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) values[i] = load_element(dtype, bytes.data() + i * size);
  return values;
}

Result<Tensor> read_back(Device& device, const OperandLayout& layout, const void* buffer) {
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_of(layout)));
  ALTIPLANO_RETURN_IF_ERROR(device.copy_to_host(bytes.data(), buffer, bytes_of(layout)));
  return from_bytes(layout.dtype, bytes);
}

Status run_op(const Kernels& kernels, const Graph& graph, const Op& op, Values& values, const RunOptions& options) {
  KernelRequest request{op.kind, op.attributes, {}, {}, options.seed};
  std::vector<Tensor> inputs;
  for (ValueId id : op.inputs) {
    const Value& value = graph.value(id);
    if (!values.contains(id)) return runtime_failure("{} needs '{}', which has no value", op.name, value.name);
    request.inputs.push_back(whole_layout(value.dtype, value.shape));
    inputs.push_back(values.at(id));
  }
  for (ValueId id : op.outputs) request.outputs.push_back(whole_layout(graph.value(id).dtype, graph.value(id).shape));
  ALTIPLANO_ASSIGN(auto results, run_kernel(kernels, request, inputs, options.step));
  for (size_t i = 0; i < results.size(); ++i) values[op.outputs[i]] = std::move(results[i]);
  return Status::ok();
}

}  // namespace

Kernels kernels_of(Device& device) {
  return {&device, [&device](const KernelRequest& request) { return device.make_kernel(request); }};
}

OperandLayout whole_layout(DType dtype, const Shape& shape) {
  return {dtype, shape, std::vector<int64_t>(shape.size(), 0), shape, -1};
}

Result<std::vector<Tensor>> run_kernel(const Kernels& kernels, const KernelRequest& request,
                                       const std::vector<Tensor>& inputs, const StepScalars& step,
                                       int64_t batch_offset) {
  Device& device = *kernels.device;
  ALTIPLANO_ASSIGN(auto kernel, kernels.make(request));
  DeviceBuffers buffers(device);
  std::vector<const void*> in;
  std::vector<void*> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ALTIPLANO_ASSERT(static_cast<int64_t>(inputs[i].size()) == num_elements(request.inputs[i].extents),
                     "input {} of {} has {} elements", i, request.kind, inputs[i].size());
    ALTIPLANO_ASSIGN(void* buffer, buffers.add(bytes_of(request.inputs[i])));
    const auto bytes = to_bytes(request.inputs[i].dtype, inputs[i]);
    ALTIPLANO_RETURN_IF_ERROR(device.copy_from_host(buffer, bytes.data(), static_cast<int64_t>(bytes.size())));
    in.push_back(buffer);
  }
  for (const OperandLayout& layout : request.outputs) {
    ALTIPLANO_ASSIGN(void* buffer, buffers.add(bytes_of(layout)));
    out.push_back(buffer);
  }
  ALTIPLANO_ASSIGN(void* workspace, buffers.add(kernel->workspace_bytes()));
  ALTIPLANO_RETURN_IF_ERROR(kernel->run({in, out, &step, batch_offset, workspace}).with_context("in " + request.kind));
  ALTIPLANO_RETURN_IF_ERROR(device.synchronize(StreamKind::kCompute));
  std::vector<Tensor> results;
  for (size_t i = 0; i < out.size(); ++i) {
    ALTIPLANO_ASSIGN(Tensor result, read_back(device, request.outputs[i], out[i]));
    results.push_back(std::move(result));
  }
  return results;
}

Result<Values> run_graph(const Kernels& kernels, const Graph& graph, Values values, const RunOptions& options) {
  for (const Op& op : graph.ops())
    if (std::count(options.phases.begin(), options.phases.end(), op.phase))
      ALTIPLANO_RETURN_IF_ERROR(run_op(kernels, graph, op, values, options));
  return values;
}

Values initial_values(const TrainingGraph& training) {
  const Graph& graph = training.graph;
  Values values;
  for (const Parameter& parameter : graph.parameters()) {
    const Value& value = graph.value(parameter.value);
    const uint64_t stream = random_stream(training.seed, value.name);
    Tensor elements(static_cast<size_t>(num_elements(value.shape)));
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = initial_element(parameter.init, stream, i);
    values[value.id] = from_bytes(value.dtype, to_bytes(value.dtype, elements));
    if (ValueId master = graph.find_value(value.name + ".master"); master.is_valid())
      values[master] = from_bytes(DType::kF32, to_bytes(DType::kF32, elements));
  }
  for (const Value& value : graph.values())
    if (value.role == Role::kOptimizerState && !values.contains(value.id))
      values[value.id].assign(static_cast<size_t>(num_elements(value.shape)), 0.0);
  return values;
}

}  // namespace altiplano::conformance
