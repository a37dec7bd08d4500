#include "tests/support/train.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "framework/base/random.hpp"
#include "framework/runtime/step_decision.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/ranks.hpp"

namespace altiplano::test {

Status SyntheticInput::fill(ValueId input, const Box& box, void* destination) {
  bool is_labels = input == graph_.inputs[1];
  int64_t vocabulary = graph_.graph.value(graph_.logits).shape.back();
  auto* out = static_cast<int32_t*>(destination);
  for (int64_t b = 0; b < box.extents[0]; ++b) {
    for (int64_t s = 0; s < box.extents[1]; ++s) {
      auto sample = static_cast<uint64_t>(box.origin[0] + b), position = static_cast<uint64_t>(box.origin[1] + s);
      uint64_t word = random_word(random_stream(99, is_labels ? "labels" : "tokens"), static_cast<uint64_t>(step_),
                                  sample * 1000 + position);
      bool is_ignored = is_labels && (word >> 20) % 16 < sample % 5;
      *out++ = is_ignored ? -1 : static_cast<int32_t>(word % static_cast<uint64_t>(vocabulary));
    }
  }
  return Status::ok();
}

namespace {

double element(DType dtype, const void* data, size_t i) {
  if (dtype == DType::kF64) return static_cast<const double*>(data)[i];
  if (dtype == DType::kF32) return static_cast<double>(static_cast<const float*>(data)[i]);
  uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return static_cast<double>(value);
}

void set_element(DType dtype, void* data, size_t i, double value) {
  if (dtype == DType::kF64) static_cast<double*>(data)[i] = value;
  if (dtype == DType::kF32) static_cast<float*>(data)[i] = static_cast<float>(value);
  auto single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof(bits));
  if (dtype == DType::kBF16) static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(bits >> 16);
}

template <typename Visit>
void for_each_global(const PersistentTensor& tensor, Visit visit) {
  std::vector<int64_t> at(tensor.box.extents.size(), 0);
  for (int64_t local = 0; local < tensor.box.num_elements(); ++local) {
    int64_t index = 0;
    for (size_t d = 0; d < at.size(); ++d) index = index * tensor.global[d] + tensor.box.origin[d] + at[d];
    visit(static_cast<size_t>(local), static_cast<size_t>(index));
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < tensor.box.extents[d]) break;
      at[d] = 0;
    }
  }
}

bool is_state(const PersistentTensor& tensor) {
  return tensor.role != TensorRole::kGradient && tensor.role != TensorRole::kTotals;
}

/// Collects boxes of all ranks into whole tensors; notes elements on which two ranks do not agree bit by bit.
class Collector {
 public:
  void add(Executor& executor, std::map<std::string, std::vector<double>>& into, std::string& differ) {
    std::lock_guard lock(mutex_);
    for (const PersistentTensor& tensor : executor.program().tensors) {
      if (!is_state(tensor)) continue;
      auto& whole = into[tensor.name];
      whole.resize(static_cast<size_t>(num_elements(tensor.global)), std::numeric_limits<double>::quiet_NaN());
      DType dtype = executor.program().buffer(tensor.buffer).dtype;
      const void* data = executor.data(tensor);
      for_each_global(tensor, [&](size_t local, size_t global) {
        double value = element(dtype, data, local);
        if (!std::isnan(whole[global]) && std::memcmp(&whole[global], &value, sizeof(value)) != 0) differ = tensor.name;
        whole[global] = value;
      });
    }
  }

 private:
  std::mutex mutex_;
};

void restore(Executor& executor, const std::map<std::string, std::vector<double>>& start) {
  for (const PersistentTensor& tensor : executor.program().tensors) {
    if (!is_state(tensor)) continue;
    DType dtype = executor.program().buffer(tensor.buffer).dtype;
    const auto& whole = start.at(tensor.name);
    for_each_global(
        tensor, [&](size_t local, size_t global) { set_element(dtype, executor.data(tensor), local, whole[global]); });
  }
}

struct World {
  const TrainingGraph& graph;
  const Plan& plan;
  const TrainOptions& options;
  TrainResult result;
  Collector collector;
  std::mutex mutex;
};

Status run_rank(World& world, Rendezvous& rendezvous) {
  auto& registry = PluginRegistry::instance();
  ALTIPLANO_ASSIGN(CommBackend * comm, registry.comm(world.options.comm));
  ALTIPLANO_ASSIGN(DeviceBackend * backend, registry.device(world.options.device));
  ALTIPLANO_ASSIGN(auto device, backend->open({world.options.threads, rendezvous.world_size()}));
  KernelCache kernels(*device, world.options.device, {}, world.graph.seed);
  LoweringOptions lowering;
  lowering.workspace = [&](const Program& program, const ComputeInstruction& instruction) -> Result<int64_t> {
    ALTIPLANO_ASSIGN(Kernel * kernel, kernels.get(program, instruction));
    return kernel->workspace_bytes();
  };
  ALTIPLANO_ASSIGN(auto programs, lower(world.graph, world.plan, make_timetable(world.plan),
                                        Binding::identity(world.plan.num_slots()), lowering));
  Program program = std::move(programs[rendezvous.rank().index()]);
  if (world.options.tamper) world.options.tamper(program);
  CommOptions comm_options;
  comm_options.deadline = std::chrono::seconds(60);
  ALTIPLANO_ASSIGN(auto communicator, comm->connect(rendezvous, comm_options));
  auto body = [&]() -> Status {
    ALTIPLANO_ASSIGN(auto executor, Executor::create(program, *device, *communicator, kernels));
    ALTIPLANO_RETURN_IF_ERROR(executor->initialize(world.graph.seed));
    if (world.options.start) restore(*executor, *world.options.start);
    world.collector.add(*executor, world.result.initial, world.result.replicas_differ);
    for (int i = 0; i < world.options.steps; ++i) {
      StepScalars scalars;
      scalars.step = world.options.first_step + i;
      scalars.learning_rate = world.options.learning_rate;
      std::unique_ptr<InputSource> input = world.options.input
                                               ? world.options.input(scalars.step)
                                               : std::make_unique<SyntheticInput>(world.graph, scalars.step);
      ALTIPLANO_RETURN_IF_ERROR(executor->run_step(*input, scalars, [&](const StepTotals& totals, StepScalars& s) {
        StepDecision decision = decide_step(totals, world.options.clip);
        s.gradient_scale = decision.gradient_scale;
        if (rendezvous.rank().value == 0) {
          world.result.losses.push_back(totals.loss());
          world.result.norms.push_back(decision.gradient_norm);
        }
        return decision.applies;
      }));
    }
    if (world.options.validate) {
      SyntheticInput input(world.graph, 1'000'000);
      ALTIPLANO_ASSIGN(StepTotals totals, executor->run_validation(input));
      if (rendezvous.rank().value == 0) world.result.validation_loss = totals.loss();
    }
    world.collector.add(*executor, world.result.tensors, world.result.replicas_differ);
    std::lock_guard lock(world.mutex);
    world.result.predicted_bytes[rendezvous.rank().index()] = program.peak().value;
    world.result.peak_bytes[rendezvous.rank().index()] = device->peak_allocated().value;
    return Status::ok();
  };
  Status status = body();
  if (!status.is_ok()) communicator->abort(status.to_string());
  return status;
}

}  // namespace

TrainResult train(const TrainingGraph& graph, const Plan& plan, const TrainOptions& options) {
  World world{graph, plan, options, {}, {}, {}};
  size_t ranks = static_cast<size_t>(plan.num_slots());
  world.result.predicted_bytes.resize(ranks);
  world.result.peak_bytes.resize(ranks);
  Status status =
      run_ranks(static_cast<int>(ranks), [&](Rendezvous& rendezvous) { return run_rank(world, rendezvous); });
  BOOST_REQUIRE_MESSAGE(status.is_ok(), plan.to_yaml() << status.to_string());
  return std::move(world.result);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double difference = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    if (!(difference <= largest)) largest = difference;  // a NaN wins
  }
  return largest;
}

double largest_difference(const std::map<std::string, std::vector<double>>& a,
                          const std::map<std::string, std::vector<double>>& b) {
  double largest = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (const auto& [name, values] : b) {
    auto it = a.find(name);
    double difference =
        it == a.end() ? std::numeric_limits<double>::infinity() : largest_difference(it->second, values);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

}  // namespace altiplano::test
