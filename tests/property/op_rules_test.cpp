// The sharding rule of every op kind is true: for each mesh and each strategy the rule allows, the op runs on the local
// boxes of every device, and the boxes put together (copied, summed, maximised as the derived specs say) equal the
// unsharded op.
#include <algorithm>
#include <cmath>
#include <set>

#include "framework/base/random.hpp"
#include "framework/conformance/op_strategies.hpp"
#include "framework/graph/op_definition.hpp"
#include "tests/support/interpreter.hpp"

using namespace altiplano;
using namespace altiplano::test;
using conformance::Kernels;
using conformance::Tensor;
using conformance::WholeOp;

namespace {

using Ints = std::vector<int64_t>;

struct Sample {
  std::vector<Shape> inputs;  ///< floating but for the ids and labels named by `integers`
  Attributes attributes = {};
  std::set<size_t> integers = {};
};

const StepScalars kStep{3, 0.1, 0.5, true};

Attributes with(Attributes attributes, const std::string& name, int64_t value) {
  attributes.set(name, value);
  return attributes;
}

using NamedSample = std::pair<std::string, Sample>;

std::vector<NamedSample> samples_of_gpt() {
  const Attributes attention{{"scale", 0.7}, {"causal", int64_t{1}}, {"dropout", 0.3}, {"stream", "a"}};
  const Attributes adamw{{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}};
  const Shape x{6, 5, 4}, bs{6, 5}, head{4, 3, 6, 2}, lse{4, 6, 3}, packed{4, 3, 3, 6, 2};
  return {
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
      {"relu", {{x}}},
      {"relu_grad", {{x, x}}},
      {"dropout", {{x}, {{"p", 0.4}, {"stream", "d"}}}},
      {"bias_gelu", {{x, {4}}}},
      {"bias_gelu", {{x, {5, 4}}, {{"approximate", "erf"}}}},
      {"bias_gelu_grad", {{x, {4}, x}}},
      {"residual_add", {{x, x, {4}}, {{"p", 0.4}, {"stream", "d"}}}},
      {"residual_add", {{x, x, {5, 4}}}},
      {"layer_norm", {{x, {4}, {4}}, {{"epsilon", 1e-5}}}},
      {"layer_norm_grad_input", {{x, x, {4}, bs, bs}}},
      {"layer_norm_grad_weight", {{x, x, bs, bs}}},
      {"softmax", {{x}}},
      {"softmax_grad", {{x, x}}},
      {"attention", {{head, head, head}, attention}},
      {"attention_grad", {{head, head, head, head, lse, head}, attention}},
      {"attention", {{head, head, head, {4, 3}}, attention, {3}}},
      {"attention_grad", {{head, head, head, head, lse, head, {4, 3}}, attention, {6}}},
      {"packed_attention", {{packed}, attention}},
      {"packed_attention", {{packed, {4, 3}}, attention, {1}}},
      {"packed_attention_grad", {{packed, head, lse, head}, attention}},
      {"packed_attention_grad", {{packed, head, lse, head, {4, 3}}, attention, {4}}},
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
}

/// Of images, and of experts.
std::vector<NamedSample> samples_of_suite_models() {
  const Shape image{4, 5, 6, 4}, filter{3, 3, 4, 6}, convolved{4, 3, 3, 6}, x{6, 5, 4};
  const Attributes window{{"stride", int64_t{2}}, {"padding", int64_t{1}}};
  const Attributes samples_of_four{{"samples", int64_t{4}}, {"epsilon", 1e-5}};
  return {
      {"conv2d", {{image, filter}, window}},
      {"conv2d_grad_input", {{convolved, filter}, with(with(window, "height", 5), "width", 6)}},
      {"conv2d_grad_weight", {{convolved, image}, with(with(window, "rows", 3), "columns", 3)}},
      {"max_pool", {{image}, with(window, "window", 3)}},
      {"max_pool_grad", {{image, {4, 3, 3, 4}, {4, 3, 3, 4}}, with(window, "window", 3)}},
      {"mean_pool", {{image}}},
      {"mean_pool_grad", {{{4, 6}}, {{"height", int64_t{3}}, {"width", int64_t{2}}}}},
      {"batch_moments", {{image}, samples_of_four}},
      {"batch_norm", {{image, {4}, {4}, {4}, {4}}, samples_of_four}},
      {"batch_norm_grad_sums", {{image, image, {4}, {4}}, samples_of_four}},
      {"batch_norm_grad_input", {{image, image, {4}, {4}, {4}, {4}, {4}}, samples_of_four}},
      {"top2_gating", {{x}, {{"capacity", int64_t{3}}}}},
      {"top2_gating_grad", {{x, {6, 5, 4, 3}}, {{"capacity", int64_t{3}}}}},
      {"matmul", {{{4, 5, 6, 3}, {4, 5, 2}}, {{"equation", "[b,s,e,c] [b,s,d] -> [e,b,c,d]"}}}},
      {"matmul", {{{6, 4, 3, 2}, {6, 2, 5}}, {{"equation", "[e,b,c,d] [e,d,f] -> [e,b,c,f]"}}}},
      {"matmul", {{{4, 5, 6, 3}, {6, 4, 3, 2}}, {{"equation", "[b,s,e,c] [e,b,c,d] -> [b,s,d]"}}}},
  };
}

const std::vector<NamedSample>& samples() {
  static const std::vector<NamedSample> all = [] {
    std::vector<NamedSample> list = samples_of_gpt();
    const auto more = samples_of_suite_models();
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }();
  return all;
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

/// `real`: the floating type of all operands.
WholeOp run_sample(const Kernels& kernels, const std::string& kind, const Sample& sample, DType real = DType::kF64) {
  conformance::OpUse use{kind, {}, sample.attributes};
  if (use.attributes.has("dtype")) use.attributes.set("dtype", std::string(to_string(real)));
  std::vector<Tensor> data;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    const bool is_integer = sample.integers.count(i) != 0;
    use.inputs.push_back({sample.inputs[i], is_integer ? DType::kI32 : real});
    data.push_back(make_data(kind, i, sample.inputs[i], is_integer));
  }
  auto whole = conformance::run_whole(kernels, use, std::move(data), kStep);
  BOOST_REQUIRE_MESSAGE(whole.is_ok(), whole.status().to_string());
  return std::move(whole).value();
}

double error_of(const Kernels& kernels, const WholeOp& whole, const Strategy& strategy, const MeshShape& mesh) {
  auto error = conformance::strategy_error(kernels, whole, strategy, mesh, kStep);
  BOOST_REQUIRE_MESSAGE(error.is_ok(), error.status().to_string());
  return *error;
}

/// Kinds that device/cpu has no kernels of yet.
const std::set<std::string> kOnlyReference = {"relu",
                                              "relu_grad",
                                              "conv2d",
                                              "conv2d_grad_input",
                                              "conv2d_grad_weight",
                                              "max_pool",
                                              "max_pool_grad",
                                              "mean_pool",
                                              "mean_pool_grad",
                                              "batch_moments",
                                              "batch_norm",
                                              "batch_norm_grad_sums",
                                              "batch_norm_grad_input",
                                              "top2_gating",
                                              "top2_gating_grad"};

/// Refused by device and kind, in the words by which a plan that is only shown passes over it.
void check_refusal(const Kernels& kernels, const std::string& kind) {
  const auto kernel =
      kernels.make(KernelRequest{kind, {}, {{DType::kF32, {2}, {0}, {2}}}, {{DType::kF32, {2}, {0}, {2}}}});
  BOOST_REQUIRE(!kernel.is_ok());
  BOOST_TEST(kernel.status().message() == fmt::format("device/cpu has {} '{}'", kNoKernelForKind, kind));
}

/// Tries every strategy of every sample; returns how many there were.
int check_device(const std::string& device_name, DType real, double tolerance) {
  std::unique_ptr<Device> device = open_device(device_name);
  const Kernels kernels = conformance::kernels_of(*device);
  int strategies = 0;
  for (const auto& [kind, sample] : samples()) {
    if (device_name == "cpu" && kOnlyReference.contains(kind)) {
      check_refusal(kernels, kind);
      continue;
    }
    const WholeOp whole = run_sample(kernels, kind, sample, real);
    for (const MeshShape& mesh : conformance::small_meshes())
      for (const Strategy& strategy : enumerate_strategies(whole.rule, mesh)) {
        const double error = error_of(kernels, whole, strategy, mesh);
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
  const Kernels kernels = conformance::kernels_of(*device);
  const MeshShape mesh{{{Axis::kData, 2}}};
  for (const Lie& lie : {Lie{"softmax", "[b,s,e] -> [b,s,e]"}, Lie{"gelu", "[b,s,e] -> [b,s,e]  linear"},
                         Lie{"reduce_max", "[b,s,e] -> [b,s]  sum: e"},
                         Lie{"layer_norm", "[b,s,e] [e] [e] -> [b,s,e] [b,s] [b,s]  sum: e"}}) {
    auto found =
        std::find_if(samples().begin(), samples().end(), [&](const auto& sample) { return sample.first == lie.kind; });
    WholeOp whole = run_sample(kernels, lie.kind, found->second);
    std::vector<ValueType> in, out;
    for (const OperandLayout& layout : whole.request.inputs) in.push_back({layout.global, layout.dtype});
    for (const OperandLayout& layout : whole.request.outputs) out.push_back({layout.global, layout.dtype});
    whole.rule = ShardingRule::parse(lie.rule, in, out).value();
    double worst = 0;
    for (const Strategy& strategy : enumerate_strategies(whole.rule, mesh))
      worst = std::max(worst, error_of(kernels, whole, strategy, mesh));
    BOOST_CHECK_MESSAGE(worst > 1e-6, lie.kind << " with rule " << lie.rule);
  }
}
