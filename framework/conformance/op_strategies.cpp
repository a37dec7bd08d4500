#include "framework/conformance/op_strategies.hpp"

#include <algorithm>
#include <cmath>

namespace altiplano::conformance {
namespace {

/// Calls f(offset in the whole tensor, offset in the box) for each element of the box.
template <typename F>
void for_each_element(const Box& box, const Shape& shape, F f) {
  for (int64_t local = 0; local < box.num_elements(); ++local) {
    int64_t rest = local, offset = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
      offset += (box.origin[d] + rest % box.extents[d]) * stride;
      rest /= box.extents[d];
    }
    f(static_cast<size_t>(offset), static_cast<size_t>(local));
  }
}

/// Share of a partial value that a device holds: shares over the axes add up to one.
double share_of(AxisSet partial, const MeshShape& mesh, int index) {
  double share = 1;
  auto at = mesh.coordinates(index);
  for (Axis axis : kAllAxes)
    if (partial.contains(axis)) {
      int degree = mesh.degree(axis), c = at[static_cast<size_t>(axis)];
      share *= 2.0 * (c + 1) / (degree * (degree + 1));
    }
  return share;
}

Tensor part_of(const Tensor& whole, const Box& box, const Shape& shape, double share) {
  Tensor part(static_cast<size_t>(box.num_elements()));
  for_each_element(box, shape, [&](size_t at, size_t local) { part[local] = whole[at] * share; });
  return part;
}

/// Whether the op's first dim is a batch, cut into microbatches: not the rows of an embedding table.
bool has_batch(const ShardingRule& rule) {
  return !rule.inputs.empty() && rule.inputs[0][0] == std::vector<int>{0} && rule.factors[0].name != "v";
}

/// The box as the kernel is told of it: `batch_offset` of the batch factor comes at run time, as a microbatch's does.
OperandLayout local_layout(OperandLayout layout, const Box& box, const std::vector<std::vector<int>>& dims, bool batch,
                           int64_t batch_offset) {
  layout.extents = box.extents;
  layout.origin = box.origin;
  if (batch && !dims.empty() && dims[0] == std::vector<int>{0}) {
    layout.batch_dim = 0;
    layout.origin[0] -= batch_offset;
  }
  return layout;
}

/// What device `index` computes under the strategy.
Result<std::vector<Tensor>> run_local(const Kernels& kernels, const WholeOp& whole, const Strategy& strategy,
                                      const MeshShape& mesh, int index, const StepScalars& step) {
  KernelRequest request = whole.request;
  std::vector<Tensor> inputs;
  const bool batch = has_batch(whole.rule);
  int64_t batch_offset = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Shape& shape = whole.request.inputs[i].global;
    const Box box = local_box(strategy.inputs[i], shape, mesh, index);
    if (i == 0 && batch) batch_offset = box.origin[0];
    request.inputs[i] = local_layout(request.inputs[i], box, whole.rule.inputs[i], batch, batch_offset);
    inputs.push_back(part_of(whole.inputs[i], box, shape, share_of(strategy.inputs[i].partial, mesh, index)));
  }
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const Box box = local_box(strategy.outputs[i], request.outputs[i].global, mesh, index);
    request.outputs[i] = local_layout(request.outputs[i], box, whole.rule.outputs[i], batch, batch_offset);
  }
  return run_kernel(kernels, request, inputs, step, batch_offset);
}

/// Puts one output together from the devices of one replica: those with these coordinates along the axes the spec does
/// not use.
Tensor assemble(const std::vector<std::vector<Tensor>>& local, size_t output, const WholeOp& whole,
                const ShardingSpec& spec, const MeshShape& mesh, int replica) {
  const Shape& shape = whole.request.outputs[output].global;
  bool is_max = !spec.partial.is_empty() && spec.partial_kind == PartialKind::kMax;
  Tensor result(static_cast<size_t>(num_elements(shape)), is_max ? -INFINITY : 0.0);
  for (int device : mesh.group(replica, spec.split_axes() | spec.partial)) {
    Box box = local_box(spec, shape, mesh, device);
    const Tensor& part = local[static_cast<size_t>(device)][output];
    for_each_element(box, shape, [&](size_t at, size_t i) {
      result[at] = is_max ? std::max(result[at], part[i]) : result[at] + part[i];
    });
  }
  return result;
}

}  // namespace

Result<WholeOp> run_whole(const Kernels& kernels, const OpUse& use, std::vector<Tensor> inputs,
                          const StepScalars& step) {
  Graph graph;
  const LayerId layer = graph.add_layer("all");
  std::vector<ValueId> ids;
  WholeOp whole{{use.kind, use.attributes, {}, {}, 11}, {}, std::move(inputs), {}};
  for (const ValueType& type : use.inputs) {
    ids.push_back(graph.add_value(fmt::format("x{}", ids.size()), type.shape, type.dtype, Role::kInput, layer));
    whole.request.inputs.push_back(whole_layout(type.dtype, type.shape));
  }
  ALTIPLANO_ASSIGN(const auto outputs, graph.add_op(use.kind, "y", ids, use.attributes, layer, Phase::kForward));
  for (ValueId id : outputs)
    whole.request.outputs.push_back(whole_layout(graph.value(id).dtype, graph.value(id).shape));
  ALTIPLANO_ASSIGN(whole.rule, rule_of(graph, graph.ops()[0]));
  ALTIPLANO_ASSIGN(whole.outputs, run_kernel(kernels, whole.request, whole.inputs, step));
  return whole;
}

Result<double> strategy_error(const Kernels& kernels, const WholeOp& whole, const Strategy& strategy,
                              const MeshShape& mesh, const StepScalars& step) {
  std::vector<std::vector<Tensor>> local;
  for (int i = 0; i < mesh.num_devices(); ++i) {
    ALTIPLANO_ASSIGN(auto outputs, run_local(kernels, whole, strategy, mesh, i, step));
    local.push_back(std::move(outputs));
  }
  double worst = 0;
  for (size_t output = 0; output < whole.outputs.size(); ++output)
    for (int replica = 0; replica < mesh.num_devices(); ++replica) {
      const Tensor together = assemble(local, output, whole, strategy.outputs[output], mesh, replica);
      worst = std::max(worst, largest_error(together, whole.outputs[output]));
    }
  return worst;
}

std::vector<MeshShape> small_meshes() {
  return {{{{Axis::kData, 2}}}, {{{Axis::kData, 3}}}, {{{Axis::kTensor, 4}}}, {{{Axis::kData, 2}, {Axis::kTensor, 2}}}};
}

double largest_error(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

}  // namespace altiplano::conformance
