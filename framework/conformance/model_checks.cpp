// Models: graphs of single-device meaning, built the same way twice, that train in every precision, and whose loss is a
// sum over the samples of the batch.
#include <algorithm>
#include <cmath>
#include <set>

#include "framework/base/plural.hpp"
#include "framework/base/random.hpp"
#include "framework/base/text.hpp"
#include "framework/conformance/check.hpp"
#include "framework/conformance/gradients.hpp"
#include "framework/conformance/oracle.hpp"
#include "framework/conformance/small_model.hpp"
#include "framework/graph/samples_together.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano::conformance {
namespace {

constexpr double kModelGradientTolerance = 1e-6;  // of central differences through a whole model in f64
constexpr double kLossTolerance = 1e-9;           // f64, another order of sums
constexpr int64_t kBatch = 4, kSequence = 6;

/// Op plugins of the search path define the kinds a model may use.
Result<Kernels> model_kernels(Device& device) {
  ALTIPLANO_ASSIGN(const auto extensions, PluginRegistry::instance().ops());
  return Kernels{&device, [&device, extensions](const KernelRequest& request) -> Result<std::unique_ptr<Kernel>> {
                   for (const OpExtension* extension : extensions)
                     for (const OpDefinition& definition : extension->definitions())
                       if (definition.kind == request.kind) return extension->make_kernel("reference", request);
                   return device.make_kernel(request);
                 }};
}

Finding check_records(Model& model) {
  std::set<std::string> names;
  const auto records = model.option_records();
  for (const OptionRecord& record : records) {
    std::vector<std::string> all = record.aliases;
    all.push_back(record.key);
    for (const std::string& name : all)
      if (name.empty() || !names.insert(name).second) return broken("the key or alias '{}' is there twice", name);
    if (record.key.starts_with("model.")) return broken("{}: keys are without their section 'model.'", record.key);
    if (trim(record.help).empty()) return broken("{}: no help; needed: one sentence", record.key);
    if (std::holds_alternative<std::monostate>(record.default_value)) continue;
    Options options(records);
    if (Status status = options.set(record.key, record.default_value, {}); !status.is_ok())
      return broken("{}: its own default is refused: {}", record.key, status.message());
  }
  return counted(static_cast<int64_t>(records.size()), "key");
}

Finding check_builds(Model& model) {
  ALTIPLANO_ASSIGN(const Options options, small_options(model, kBatch, kSequence));
  for (int64_t batch : {int64_t{1}, int64_t{3}, kBatch})
    for (int64_t sequence : {int64_t{1}, int64_t{5}, kSequence}) {
      auto built = model.build(options, {batch, sequence});
      if (!built.is_ok()) return broken("{} of {}: {}", counted(batch, "sample"), sequence, built.status().to_string());
      ALTIPLANO_RETURN_IF_ERROR(built->graph.verify());
      for (ValueId id : built->inputs)
        if (const Value& value = built->graph.value(id); value.shape.empty() || value.shape[0] != batch)
          return broken("input '{}' is {}; its dim 0 must be the batch, {}", value.name, to_string(value.shape), batch);
      auto again = model.build(options, {batch, sequence});
      if (!again.is_ok() || again->graph.to_string() != built->graph.to_string() ||
          again->graph.fingerprint() != built->graph.fingerprint())
        return broken("{} of {}: built twice, the graphs differ", counted(batch, "sample"), sequence);
    }
  return "small: " + settings_text(options);
}

Finding check_precisions(Model& model) {
  ALTIPLANO_ASSIGN(const Options options, small_options(model, kBatch, kSequence));
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64})
    for (const char* optimizer : {"adamw", "sgd"}) {
      ALTIPLANO_ASSIGN(ModelGraph forward, model.build(options, {kBatch, kSequence}));
      OptimizerOptions update;
      update.name = optimizer;
      auto training = make_training_graph(std::move(forward), dtype, update, 7);
      if (!training.is_ok())
        return broken("{} with {}: {}", to_string(dtype), optimizer, training.status().to_string());
      ALTIPLANO_RETURN_IF_ERROR(training->graph.verify());
      if (training->parameters.empty()) return broken("it has no trainable parameter");
    }
  return "f32, bf16, f64 x adamw, sgd";
}

/// Ids below the size of the logits' last dim, numbers around 0; pure in `first_sample` + row.
Tensor input_data(const Graph& graph, const Value& value, int64_t num_ids, int64_t first_sample) {
  Tensor data(static_cast<size_t>(num_elements(value.shape)));
  const size_t per_sample = data.size() / static_cast<size_t>(std::max<int64_t>(1, value.shape[0]));
  const uint64_t stream = random_stream(5, value.name + graph.name);
  for (size_t i = 0; i < data.size(); ++i) {
    const uint64_t sample = static_cast<uint64_t>(first_sample) + i / per_sample;
    const double uniform = random_uniform(stream, sample, i % per_sample);
    data[i] = is_floating(value.dtype) ? uniform - 0.5 : std::floor(uniform * static_cast<double>(num_ids));
  }
  return data;
}

struct Loss {
  double sum = 0, tokens = 0;
};

/// The model in f64 with its initial weights on `batch` samples from `first_sample`.
Result<TrainingGraph> small_training(Model& model, const Options& options, int64_t batch, int64_t first_sample,
                                     Values& values) {
  ALTIPLANO_ASSIGN(ModelGraph forward, model.build(options, {batch, kSequence}));
  ALTIPLANO_ASSIGN(TrainingGraph training, make_training_graph(std::move(forward), DType::kF64, {}, 7));
  const Shape& logits = training.graph.value(training.logits).shape;
  values = initial_values(training);
  for (ValueId id : training.inputs)
    values[id] = input_data(training.graph, training.graph.value(id), logits.empty() ? 2 : logits.back(), first_sample);
  return training;
}

Result<Loss> loss_of(Model& model, const Options& options, Device& device, int64_t batch, int64_t first_sample) {
  Values values;
  ALTIPLANO_ASSIGN(const TrainingGraph training, small_training(model, options, batch, first_sample, values));
  ALTIPLANO_ASSIGN(const Kernels kernels, model_kernels(device));
  RunOptions run{{}, training.seed, {Phase::kForward}};
  run.step.training = false;
  ALTIPLANO_ASSIGN(const Values all, run_graph(kernels, training.graph, std::move(values), run));
  return Loss{all.at(training.loss_sum)[0], all.at(training.token_count)[0]};
}

Finding check_batch(Model& model) {
  ALTIPLANO_ASSIGN(const Options options, small_options(model, kBatch, kSequence));
  ALTIPLANO_ASSIGN(const auto device, open_oracle());
  ALTIPLANO_ASSIGN(const Loss whole, loss_of(model, options, *device, kBatch, 0));
  if (!std::isfinite(whole.sum) || !(whole.tokens > 0))
    return broken("the loss is {} over {} tokens", whole.sum, whole.tokens);
  ALTIPLANO_ASSIGN(const ModelGraph built, model.build(options, {kBatch, kSequence}));
  ALTIPLANO_ASSIGN(const int64_t together, samples_together(built.graph));  // such a loss is no sum over single ones
  if (together > 1) return fmt::format("statistics over {} samples; loss {:.4f}", together, whole.sum / whole.tokens);
  Loss parts;
  for (int64_t sample = 0; sample < kBatch; ++sample) {
    ALTIPLANO_ASSIGN(const Loss one, loss_of(model, options, *device, 1, sample));
    parts.sum += one.sum;
    parts.tokens += one.tokens;
  }
  if (!(std::abs(parts.sum - whole.sum) <= kLossTolerance * std::abs(whole.sum)) || parts.tokens != whole.tokens)
    return broken("{} samples together give loss {} over {} tokens, one by one {} over {}", kBatch, whole.sum,
                  whole.tokens, parts.sum, parts.tokens);
  return fmt::format("loss {:.4f} per token over {} tokens", whole.sum / whole.tokens, whole.tokens);
}

/// Off the start, where weights of 0 put everything behind them onto the edge of a maximum.
void nudge(const TrainingGraph& training, Values& values) {
  constexpr double kNudge = 0.05;
  for (const Parameter& parameter : training.graph.parameters()) {
    const uint64_t stream = random_stream(3, training.graph.value(parameter.value).name);
    for (uint64_t i = 0; double& element : values.at(parameter.value))
      element += kNudge * random_normal(stream, 0, i++);
  }
}

Finding check_gradients(Model& model) {
  ALTIPLANO_ASSIGN(const Options options, small_options(model, 2, kSequence));
  ALTIPLANO_ASSIGN(const auto device, open_oracle());
  Values values;
  ALTIPLANO_ASSIGN(const TrainingGraph training, small_training(model, options, 2, 0, values));
  nudge(training, values);
  ALTIPLANO_ASSIGN(const Kernels kernels, model_kernels(*device));
  ALTIPLANO_ASSIGN(const GradientError worst, gradient_error(kernels, training, std::move(values), 3));
  if (!(worst.error <= kModelGradientTolerance))
    return broken("the gradient of {} is {}, by differences {}", worst.parameter, worst.gradient, worst.difference);
  return counted(worst.num_tried, "element") + " of " +
         counted(static_cast<int64_t>(training.parameters.size()), "parameter");
}

Finding check_nonsense(Model& model) {
  ALTIPLANO_ASSIGN(const Options options, small_options(model, kBatch, kSequence));
  for (const ModelRequest& request : {ModelRequest{0, kSequence}, ModelRequest{kBatch, 0}, ModelRequest{-1, -1}}) {
    auto built = model.build(options, request);
    if (built.is_ok())
      return broken("{} of {} {} built", counted(request.global_batch, "sample"), request.sequence_length,
                    plural(request.global_batch, "was", "were"));
    if (built.status().message().empty()) return broken("a refusal without a word");
  }
  return "3 requests refused";
}

/// Options pushed to their bounds one at a time are built or refused; the process must live.
Finding check_bounds(Model& model) {
  int num_built = 0, num_refused = 0;
  ALTIPLANO_ASSIGN(const Options small, small_options(model, kBatch, kSequence));
  for (const OptionRecord& record : small.records()) {
    for (double bound : {record.minimum, record.maximum, 7.0}) {
      Options options = small;
      const bool is_integer = record.type == OptionType::kInt;
      if (!std::isfinite(bound) || (!is_integer && record.type != OptionType::kFloat)) continue;
      if (is_integer && bound > 64) continue;  // a huge model is no mistake
      const OptionValue value = is_integer ? OptionValue(static_cast<int64_t>(bound)) : OptionValue(bound);
      if (!options.set(record.key, value, {}).is_ok()) continue;
      auto built = model.build(options, {kBatch, kSequence});
      ++(built.is_ok() ? num_built : num_refused);
      if (built.is_ok()) ALTIPLANO_RETURN_IF_ERROR(built->graph.verify());
      if (!built.is_ok() && built.status().message().empty()) return broken("{}: refused without a word", record.key);
    }
  }
  return fmt::format("{} built, {} refused", num_built, num_refused);
}

}  // namespace

std::vector<Check> model_checks() {
  return {check_of<Model>("every key has its default and help, and is there once", check_records),
          check_of<Model>("equal options give equal, verified graphs with the batch in dim 0", check_builds),
          check_of<Model>("it can be trained in every precision", check_precisions),
          check_of<Model>("options at their bounds are built or refused", check_bounds),
          check_of<Model>("requests that make no sense are refused", check_nonsense),
          check_of<Model>("the loss of a batch is the sum over its samples", check_batch),
          check_of<Model>("gradients are those of finite differences", check_gradients)};
}

}  // namespace altiplano::conformance
