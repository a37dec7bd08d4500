// The sharding rule of every op kind is true: for each mesh and each strategy the rule allows, the op runs on the local
// boxes of every device, and the boxes put together (copied, summed, maximised as the derived specs say) equal the
// unsharded op.
#include <algorithm>
#include <cmath>
#include <set>

#include "framework/base/random.hpp"
#include "framework/graph/op_definition.hpp"
#include "framework/sharding/rule.hpp"
#include "tests/support/interpreter.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

using Ints = std::vector<int64_t>;
using Tensor = std::vector<double>;

struct Sample {
  std::vector<Shape> inputs;  ///< floating but for the ids and labels named by `integers`
  Attributes attributes = {};
  std::set<size_t> integers = {};
};

const StepScalars kStep{3, 0.1, 0.5, true};

const std::vector<std::pair<std::string, Sample>>& samples() {
  static const Attributes attention{{"scale", 0.7}, {"causal", int64_t{1}}, {"dropout", 0.3}, {"stream", "a"}};
  static const Attributes adamw{{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}};
  static const Shape x{6, 5, 4}, bs{6, 5}, head{4, 3, 6, 2}, lse{4, 6, 3};
  static const std::vector<std::pair<std::string, Sample>> list = {
      {"matmul", {{x, {4, 7}}, {{"equation", "[b,s,d] [d,f] -> [b,s,f]"}}}},
      {"matmul", {{x, {7, 4}}, {{"equation", "[b,s,d] [v,d] -> [b,s,v]"}}}},
      {"matmul", {{x, {6, 5, 7}}, {{"equation", "[b,s,d] [b,s,f] -> [d,f]"}}}},
      {"matmul", {{{4, 3, 6, 2}, {6, 2, 5}}, {{"equation", "[b,s,h,k] [h,k,d] -> [b,s,d]"}}}},
      {"add", {{x, x}}},
      {"multiply", {{x, x}}},
      {"add_bias", {{x, {4}}}},
      {"add_bias", {{x, {5, 4}}}},
      {"scale", {{x}, {{"factor", 1.5}}}},
      {"cast", {{x}, {{"dtype", "f64"}}}},
      {"gelu", {{x}}},
      {"gelu", {{x}, {{"approximate", "erf"}}}},
      {"gelu_grad", {{x, x}}},
      {"dropout", {{x}, {{"p", 0.4}, {"stream", "d"}}}},
      {"layer_norm", {{x, {4}, {4}}, {{"epsilon", 1e-5}}}},
      {"layer_norm_grad_input", {{x, x, {4}, bs, bs}}},
      {"layer_norm_grad_weight", {{x, x, bs, bs}}},
      {"softmax", {{x}}},
      {"softmax_grad", {{x, x}}},
      {"attention", {{head, head, head}, attention}},
      {"attention_grad", {{head, head, head, head, lse, head}, attention}},
      {"attention", {{head, head, head, {4, 3}}, attention, {3}}},
      {"attention_grad", {{head, head, head, head, lse, head, {4, 3}}, attention, {6}}},
      {"embedding", {{{7, 4}, bs}, {}, {1}}},
      {"embedding_grad", {{x, bs}, {{"rows", int64_t{7}}}, {1}}},
      {"reduce_sum", {{x}, {{"dims", Ints{0, 1}}}}},
      {"reduce_max", {{x}, {{"dims", Ints{2}}}}},
      {"broadcast_to", {{bs}, {{"dims", Ints{1}}, {"sizes", Ints{4}}}}},
      {"exp_sum", {{{6, 5, 7}, bs}}},
      {"pick", {{{6, 5, 7}, bs}, {}, {1}}},
      {"nll", {{bs, bs, bs, bs}, {}, {3}}},
      {"count_valid", {{bs}, {}, {0}}},
      {"cross_entropy_grad", {{{6, 5, 7}, bs, bs, bs, bs}, {}, {3}}},
      {"reshape", {{{4, 12}}, {{"shape", Ints{4, 4, 3}}}}},
      {"reshape", {{{4, 6, 1, 2}}, {{"shape", Ints{24, 2}}}}},
      {"transpose", {{x}, {{"permutation", Ints{2, 0, 1}}}}},
      {"slice", {{x}, {{"dim", int64_t{1}}, {"start", int64_t{1}}, {"length", int64_t{3}}}}},
      {"pad", {{x}, {{"dim", int64_t{2}}, {"before", int64_t{1}}, {"after", int64_t{2}}}}},
      {"concat", {{x, {6, 2, 4}}, {{"dim", int64_t{1}}}}},
      {"sum_squares", {{x}}},
      {"fill", {{}, {{"shape", Ints{5, 4}}, {"dtype", "f64"}, {"value", 2.5}}}},
      {"adamw", {{x, x, x, x}, adamw}},
      {"sgd", {{x, x, x}, {{"momentum", 0.9}, {"weight_decay", 0.1}}}},
  };
  return list;
}

/// Floats in (0.5, 1.5), so that logarithms and roots exist; ids in 0..6 and a few ignored labels for the losses.
Tensor make_data(const std::string& kind, size_t operand, const Shape& shape, bool is_integer) {
  Tensor data(static_cast<size_t>(num_elements(shape)));
  bool may_ignore = is_integer && !kind.starts_with("embedding");
  for (size_t i = 0; i < data.size(); ++i) {
    double u = random_uniform(random_stream(1, kind), operand, i);
    data[i] = !is_integer ? 0.5 + u : (may_ignore && i % 7 == 3 ? -1 : std::floor(7 * u));
  }
  return data;
}

/// One op with its whole inputs and the whole result.
struct Whole {
  KernelRequest request;
  ShardingRule rule;
  std::vector<Tensor> inputs, outputs;
};

/// `real`: the floating type of all operands.
Whole run_whole(Device& device, const std::string& kind, const Sample& sample, DType real = DType::kF64) {
  Graph graph;
  LayerId layer = graph.add_layer("all");
  std::vector<ValueId> ids;
  Attributes attributes = sample.attributes;
  if (attributes.has("dtype")) attributes.set("dtype", std::string(to_string(real)));
  Whole whole{{kind, attributes, {}, {}, 11}, {}, {}, {}};
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    DType dtype = sample.integers.count(i) ? DType::kI32 : real;
    ids.push_back(graph.add_value(fmt::format("x{}", i), sample.inputs[i], dtype, Role::kInput, layer));
    whole.request.inputs.push_back(whole_layout(dtype, sample.inputs[i]));
    whole.inputs.push_back(make_data(kind, i, sample.inputs[i], dtype == DType::kI32));
  }
  auto outputs = graph.add_op(kind, "y", ids, attributes, layer, Phase::kForward);
  BOOST_REQUIRE_MESSAGE(outputs.is_ok(), outputs.status().to_string());
  for (ValueId id : *outputs)
    whole.request.outputs.push_back(whole_layout(graph.value(id).dtype, graph.value(id).shape));
  auto rule = rule_of(graph, graph.ops()[0]);
  BOOST_REQUIRE_MESSAGE(rule.is_ok(), rule.status().to_string());
  whole.rule = *rule;
  whole.outputs = run_kernel(device, whole.request, whole.inputs, kStep);
  return whole;
}

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
std::vector<Tensor> run_local(Device& device, const Whole& whole, const Strategy& strategy, const MeshShape& mesh,
                              int index) {
  KernelRequest request = whole.request;
  std::vector<Tensor> inputs;
  const bool batch = has_batch(whole.rule);
  int64_t batch_offset = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Shape& shape = whole.request.inputs[i].global;
    Box box = local_box(strategy.inputs[i], shape, mesh, index);
    if (i == 0 && batch) batch_offset = box.origin[0];
    request.inputs[i] = local_layout(request.inputs[i], box, whole.rule.inputs[i], batch, batch_offset);
    inputs.push_back(part_of(whole.inputs[i], box, shape, share_of(strategy.inputs[i].partial, mesh, index)));
  }
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    Box box = local_box(strategy.outputs[i], request.outputs[i].global, mesh, index);
    request.outputs[i] = local_layout(request.outputs[i], box, whole.rule.outputs[i], batch, batch_offset);
  }
  return run_kernel(device, request, inputs, kStep, batch_offset);
}

/// Puts one output together from the devices of one replica: those with these coordinates along the axes the spec does
/// not use.
Tensor assemble(const std::vector<std::vector<Tensor>>& local, size_t output, const Whole& whole,
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

double largest_error(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double error = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

/// Largest error of any output on any replica.
double strategy_error(Device& device, const Whole& whole, const Strategy& strategy, const MeshShape& mesh) {
  std::vector<std::vector<Tensor>> local;
  for (int i = 0; i < mesh.num_devices(); ++i) local.push_back(run_local(device, whole, strategy, mesh, i));
  double worst = 0;
  for (size_t output = 0; output < whole.outputs.size(); ++output)
    for (int replica = 0; replica < mesh.num_devices(); ++replica) {
      Tensor together = assemble(local, output, whole, strategy.outputs[output], mesh, replica);
      worst = std::max(worst, largest_error(together, whole.outputs[output]));
    }
  return worst;
}

/// Tries every strategy of every sample; returns how many there were.
int check_device(const std::string& device_name, DType real, double tolerance) {
  std::unique_ptr<Device> device = open_device(device_name);
  const MeshShape meshes[] = {
      {{{Axis::kData, 2}}}, {{{Axis::kData, 3}}}, {{{Axis::kTensor, 4}}}, {{{Axis::kData, 2}, {Axis::kTensor, 2}}}};
  int strategies = 0;
  for (const auto& [kind, sample] : samples()) {
    Whole whole = run_whole(*device, kind, sample, real);
    for (const MeshShape& mesh : meshes)
      for (const Strategy& strategy : enumerate_strategies(whole.rule, mesh)) {
        double error = strategy_error(*device, whole, strategy, mesh);
        if (error > tolerance)
          BOOST_ERROR(fmt::format("{} {} on {} by {} is off by {}", kind, whole.rule.to_string(), mesh.to_string(),
                                  strategy.to_string(whole.rule), error));
        ++strategies;
      }
  }
  BOOST_TEST_MESSAGE(device_name << ": " << strategies << " strategies");
  return strategies;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_strategy_of_every_op_equals_the_unsharded_op) {
  BOOST_CHECK_GT(check_device("reference", DType::kF64, 1e-12), 500);
}

BOOST_AUTO_TEST_CASE(every_strategy_of_every_op_equals_the_unsharded_op_on_the_cpu_in_f32) {
  BOOST_CHECK_GT(check_device("cpu", DType::kF32, 1e-5), 500);
}

BOOST_AUTO_TEST_CASE(every_op_kind_has_a_sample) {
  std::set<std::string> kinds;
  for (const auto& [kind, sample] : samples()) kinds.insert(kind);
  for (const std::string& kind : OpTable::instance().kinds())
    BOOST_CHECK_MESSAGE(kinds.count(kind), kind << " has no sample");
}

BOOST_AUTO_TEST_CASE(a_rule_that_lies_is_found_out) {
  struct Lie {
    const char *kind, *rule;
  };
  std::unique_ptr<Device> device = open_device();
  const MeshShape mesh{{{Axis::kData, 2}}};
  for (const Lie& lie : {Lie{"softmax", "[b,s,e] -> [b,s,e]"}, Lie{"gelu", "[b,s,e] -> [b,s,e]  linear"},
                         Lie{"reduce_max", "[b,s,e] -> [b,s]  sum: e"},
                         Lie{"layer_norm", "[b,s,e] [e] [e] -> [b,s,e] [b,s] [b,s]  sum: e"}}) {
    auto found =
        std::find_if(samples().begin(), samples().end(), [&](const auto& sample) { return sample.first == lie.kind; });
    Whole whole = run_whole(*device, lie.kind, found->second);
    std::vector<ValueType> in, out;
    for (const OperandLayout& layout : whole.request.inputs) in.push_back({layout.global, layout.dtype});
    for (const OperandLayout& layout : whole.request.outputs) out.push_back({layout.global, layout.dtype});
    whole.rule = ShardingRule::parse(lie.rule, in, out).value();
    double worst = 0;
    for (const Strategy& strategy : enumerate_strategies(whole.rule, mesh))
      worst = std::max(worst, strategy_error(*device, whole, strategy, mesh));
    BOOST_CHECK_MESSAGE(worst > 1e-6, lie.kind << " with rule " << lie.rule);
  }
}
