// Ops: complete definitions, true sharding rules, right gradients, kernels that agree on every device.
#include <algorithm>
#include <cmath>
#include <set>

#include "framework/base/plural.hpp"
#include "framework/base/random.hpp"
#include "framework/base/text.hpp"
#include "framework/conformance/check.hpp"
#include "framework/conformance/gradients.hpp"
#include "framework/conformance/op_strategies.hpp"
#include "framework/conformance/oracle.hpp"
#include "framework/graph/builder.hpp"

namespace altiplano::conformance {
namespace {

constexpr double kRuleTolerance = 1e-12;       // f64, sums of a few elements in another order
constexpr double kOpGradientTolerance = 1e-7;  // of central differences in f64
constexpr double kDeviceTolerance = 1e-5;      // f32 against f64
const StepScalars kStep{3, 0.1, 0.5, true};

/// The definitions in the table of kinds, added when they are not there yet.
Result<std::vector<OpDefinition>> known_definitions(const OpExtension& extension) {
  std::vector<OpDefinition> definitions = extension.definitions();
  for (const OpDefinition& definition : definitions)
    if (OpTable::instance().find(definition.kind) == nullptr)
      ALTIPLANO_RETURN_IF_ERROR(OpTable::instance().add(definition));
  return definitions;
}

Kernels kernels_with(const OpExtension& extension, Device& device, const std::string& device_kind) {
  std::set<std::string> kinds;
  for (const OpDefinition& definition : extension.definitions()) kinds.insert(definition.kind);
  return {&device,
          [&extension, &device, device_kind, kinds](const KernelRequest& request) -> Result<std::unique_ptr<Kernel>> {
            return kinds.contains(request.kind) ? extension.make_kernel(device_kind, request)
                                                : device.make_kernel(request);
          }};
}

/// The sample with every floating type as `real`.
OpUse use_of(const OpSample& sample, DType real) {
  OpUse use{sample.kind, sample.inputs, sample.attributes};
  for (ValueType& type : use.inputs)
    if (is_floating(type.dtype)) type.dtype = real;
  if (use.attributes.has("dtype")) use.attributes.set("dtype", std::string(to_string(real)));
  return use;
}

Tensor data_of(const OpSample& sample, size_t operand) {
  const ValueType& type = sample.inputs[operand];
  Tensor data(static_cast<size_t>(num_elements(type.shape)));
  for (size_t i = 0; i < data.size(); ++i) {
    const double uniform = random_uniform(random_stream(1, sample.kind), operand, i);
    data[i] = is_floating(type.dtype) ? 0.5 + uniform : std::floor(uniform * static_cast<double>(sample.num_ids));
  }
  return data;
}

std::vector<Tensor> all_data(const OpSample& sample) {
  std::vector<Tensor> data;
  for (size_t i = 0; i < sample.inputs.size(); ++i) data.push_back(data_of(sample, i));
  return data;
}

std::string name_of(const OpSample& sample) {
  std::vector<std::string> shapes;
  for (const ValueType& type : sample.inputs) shapes.push_back(to_string(type.shape));
  return fmt::format("{}({}){}", sample.kind, join(shapes, ", "), sample.attributes.to_string());
}

Status check_definition(const OpDefinition& definition, std::set<std::string>& seen) {
  if (definition.kind.empty()) return broken("a definition without a kind");
  if (!seen.insert(definition.kind).second) return broken("{} is defined twice", definition.kind);
  if (trim(definition.help).empty())
    return broken("{}: no help; needed: what it computes, inputs -> outputs", definition.kind);
  if (!definition.infer) return broken("{}: infer is null", definition.kind);
  if (!definition.rule) return broken("{}: rule is null", definition.kind);
  for (int alias : definition.aliases)
    if (alias < 0 || alias >= definition.num_inputs)
      return broken("{}: alias {} of {} inputs", definition.kind, alias, definition.num_inputs);
  return Status::ok();
}

Finding check_definitions(OpExtension& extension) {
  std::set<std::string> seen;
  const auto definitions = extension.definitions();
  if (definitions.empty()) return broken("it defines no op");
  for (const OpDefinition& definition : definitions) ALTIPLANO_RETURN_IF_ERROR(check_definition(definition, seen));
  const auto again = extension.definitions();
  if (again.size() != definitions.size()) return broken("it defines {} ops, then {}", definitions.size(), again.size());
  ALTIPLANO_RETURN_IF_ERROR(known_definitions(extension).status());
  return join({seen.begin(), seen.end()}, ", ");
}

Finding check_samples(OpExtension& extension) {
  ALTIPLANO_ASSIGN(const auto definitions, known_definitions(extension));
  const auto samples = extension.samples();
  for (const OpDefinition& definition : definitions)
    if (std::none_of(samples.begin(), samples.end(), [&](const OpSample& s) { return s.kind == definition.kind; }))
      return broken("{} has no sample", definition.kind);
  for (const OpSample& sample : samples) {
    const auto at = std::find_if(definitions.begin(), definitions.end(),
                                 [&](const OpDefinition& d) { return d.kind == sample.kind; });
    if (at == definitions.end()) return broken("a sample of {}, which is not defined here", sample.kind);
    ALTIPLANO_ASSIGN(const auto outputs, at->infer(sample.inputs, sample.attributes));
    const double flops = at->flops ? at->flops(sample.inputs, outputs, sample.attributes) : 0;
    if (!(flops >= 0) || std::isinf(flops)) return broken("{}: {} FLOPs", name_of(sample), flops);
    const std::string text = at->rule(sample.inputs, outputs, sample.attributes);
    ALTIPLANO_RETURN_IF_ERROR(ShardingRule::parse(text, sample.inputs, outputs).status());
  }
  return counted(static_cast<int64_t>(samples.size()), "sample");
}

Finding check_rules(OpExtension& extension) {
  ALTIPLANO_RETURN_IF_ERROR(known_definitions(extension).status());
  ALTIPLANO_ASSIGN(const auto device, open_oracle());
  const Kernels kernels = kernels_with(extension, *device, "reference");
  int num_strategies = 0;
  for (const OpSample& sample : extension.samples()) {
    ALTIPLANO_ASSIGN(const WholeOp whole, run_whole(kernels, use_of(sample, DType::kF64), all_data(sample), kStep));
    for (const MeshShape& mesh : small_meshes())
      for (const Strategy& strategy : enumerate_strategies(whole.rule, mesh)) {
        ALTIPLANO_ASSIGN(const double error, strategy_error(kernels, whole, strategy, mesh, kStep));
        if (!(error <= kRuleTolerance))
          return broken("{} with rule {} on {} split {} is off by {:.1e}, allowed {:.0e}", name_of(sample),
                        whole.rule.to_string(), mesh.to_string(), strategy.to_string(whole.rule), error,
                        kRuleTolerance);
        ++num_strategies;
      }
  }
  return fmt::format("{} strategies on 4 meshes", num_strategies);
}

/// A graph whose loss is a fixed random weighting of one output of the op.
Result<TrainingGraph> differentiated(const OpSample& sample, size_t output, std::map<std::string, Tensor>& data) {
  GraphBuilder builder("sample");
  builder.layer("all");
  std::vector<ValueId> operands, inputs;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    const ValueType& type = sample.inputs[i];
    const std::string name = fmt::format("x{}", i);
    data[name] = data_of(sample, i);
    if (is_floating(type.dtype)) {
      operands.push_back(builder.parameter(name, type.shape, {}));
    } else {
      operands.push_back(builder.input(name, type.shape, type.dtype));
      inputs.push_back(operands.back());
    }
  }
  const auto outputs = builder.op(sample.kind, "y", operands, sample.attributes);
  ALTIPLANO_RETURN_IF_ERROR(builder.status());
  const Value out = builder.graph().value(outputs[output]);
  Tensor weights(static_cast<size_t>(num_elements(out.shape)));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = random_normal(99, output, i);
  data["weights"] = weights;
  inputs.push_back(builder.input("weights", out.shape, out.dtype));
  ValueId loss = builder.op1("multiply", "weighted", {out.id, inputs.back()});
  std::vector<int64_t> dims;
  for (size_t i = 0; i < out.shape.size(); ++i) dims.push_back(static_cast<int64_t>(i));
  loss = out.shape.empty() ? builder.op1("cast", "loss", {loss}, {{"dtype", "f64"}})
                           : builder.op1("reduce_sum", "loss", {loss}, {{"dims", dims}, {"dtype", "f64"}});
  ALTIPLANO_ASSIGN(ModelGraph model, builder.finish(inputs, loss, loss, out.id));
  ALTIPLANO_RETURN_IF_ERROR(set_precision(model, DType::kF64));
  return differentiate(std::move(model));
}

/// 0 when the output carries no gradient; else how many elements were tried.
Result<int> check_gradient(const Kernels& kernels, const OpSample& sample, size_t output) {
  std::map<std::string, Tensor> data;
  ALTIPLANO_ASSIGN(const TrainingGraph training, differentiated(sample, output, data));
  ALTIPLANO_RETURN_IF_ERROR(training.graph.verify());
  Values values;
  for (const auto& [name, elements] : data) values[training.graph.find_value(name)] = elements;
  ALTIPLANO_ASSIGN(const GradientError worst, gradient_error(kernels, training, values, 64));
  if (!(worst.error <= kOpGradientTolerance))
    return broken("{}: the gradient of output {} in {} is {}, by differences {}", name_of(sample), output,
                  worst.parameter, worst.gradient, worst.difference);
  return worst.num_tried;
}

Finding check_gradients(OpExtension& extension) {
  ALTIPLANO_ASSIGN(const auto definitions, known_definitions(extension));
  ALTIPLANO_ASSIGN(const auto device, open_oracle());
  const Kernels kernels = kernels_with(extension, *device, "reference");
  int num_tried = 0;
  for (const OpSample& sample : extension.samples()) {
    const OpDefinition& definition = OpTable::instance().get(sample.kind);
    if (!definition.gradient) continue;
    ALTIPLANO_ASSIGN(const auto outputs, definition.infer(sample.inputs, sample.attributes));
    for (size_t output = 0; output < outputs.size(); ++output) {
      if (!is_floating(outputs[output].dtype)) continue;
      auto tried = check_gradient(kernels, sample, output);
      // Side results (a mean kept for backward) may refuse to be differentiated; the first output may not.
      if (!tried.is_ok() && output > 0 && tried.status().code() == StatusCode::kInvalidArgument) continue;
      if (!tried.is_ok()) return Status(tried.status()).with_context("of " + name_of(sample));
      num_tried += *tried;
    }
  }
  return counted(num_tried, "element");
}

std::string no_gradients(const Subject& subject) {
  for (const OpDefinition& definition : subject.as<OpExtension>().definitions())
    if (definition.gradient) return "";
  return "no op of it is differentiable";
}

/// One sample on one device; false when it has no kernel there and says so.
Result<bool> check_device(const OpExtension& extension, const std::string& device_kind, Device& device,
                          const OpSample& sample, const WholeOp& oracle) {
  const Kernels kernels = kernels_with(extension, device, device_kind);
  const OpUse use = use_of(sample, DType::kF32);
  auto have = run_whole(kernels, use, all_data(sample), kStep);
  if (!have.is_ok()) {
    ALTIPLANO_RETURN_IF_ERROR(must_mention(have.status(), {device_kind.c_str()}));
    return false;
  }
  auto again = run_whole(kernels, use, all_data(sample), kStep);
  if (!again.is_ok() || again->outputs != have->outputs)
    return broken("{} on device {} gives other bits the second time", name_of(sample), device_kind);
  for (size_t i = 0; i < oracle.outputs.size(); ++i)
    if (const double error = largest_error(have->outputs[i], oracle.outputs[i]); !(error <= kDeviceTolerance))
      return broken("{} on device {} in f32: output {} is off by {:.1e}, allowed {:.0e}", name_of(sample), device_kind,
                    i, error, kDeviceTolerance);
  return true;
}

Finding check_devices(OpExtension& extension) {
  ALTIPLANO_RETURN_IF_ERROR(known_definitions(extension).status());
  ALTIPLANO_ASSIGN(const auto oracle_device, open_oracle());
  const Kernels kernels = kernels_with(extension, *oracle_device, "reference");
  std::vector<std::string> texts;
  for (const std::string& kind : device_kinds()) {
    ALTIPLANO_ASSIGN(const auto device, open_device(kind));
    int num_right = 0;
    const auto samples = extension.samples();
    for (const OpSample& sample : samples) {
      ALTIPLANO_ASSIGN(const WholeOp oracle, run_whole(kernels, use_of(sample, DType::kF64), all_data(sample), kStep));
      ALTIPLANO_ASSIGN(const bool is_there, check_device(extension, kind, *device, sample, oracle));
      num_right += is_there;
    }
    texts.push_back(fmt::format("{} {} of {}", kind, num_right, samples.size()));
  }
  return "samples with kernels: " + join(texts, ", ");
}

Finding check_unknown_device(OpExtension& extension) {
  for (const OpSample& sample : extension.samples()) {
    auto kernel = extension.make_kernel("abacus", {sample.kind, sample.attributes, {}, {}, 0});
    if (kernel.is_ok()) return broken("{} has a kernel for the device 'abacus'", sample.kind);
    ALTIPLANO_RETURN_IF_ERROR(must_mention(kernel.status(), {"abacus"}));
  }
  return "device 'abacus' refused by name";
}

}  // namespace

std::vector<Check> op_checks() {
  std::vector<Check> checks = {
      check_of<OpExtension>("every definition is complete and its kind is new", check_definitions),
      check_of<OpExtension>("every op has a sample that its definition accepts", check_samples),
      check_of<OpExtension>("a device without a kernel is refused by name", check_unknown_device),
      check_of<OpExtension>("split by any strategy of its sharding rule, an op gives the same", check_rules),
      check_of<OpExtension>("gradients are those of finite differences", check_gradients),
      check_of<OpExtension>("every device agrees with the reference, twice with the same bits", check_devices),
  };
  checks[4].not_owed = no_gradients;
  return checks;
}

}  // namespace altiplano::conformance
