#include "tests/support/train.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "framework/base/random.hpp"
#include "framework/runtime/step_decision.hpp"
#include "tests/support/documents.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/rank_result.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/temporary_directory.hpp"

namespace altiplano::test {

Status SyntheticInput::fill(ValueId input, const Box& box, void* destination) {
  bool is_labels = input == graph_.inputs[1];
  const std::string& name = graph_.graph.value(input).name;
  int64_t vocabulary = graph_.graph.value(graph_.logits).shape.back();
  auto* out = static_cast<int32_t*>(destination);
  for (int64_t b = 0; b < box.extents[0]; ++b) {
    for (int64_t s = 0; s < box.extents[1]; ++s) {
      auto sample = static_cast<uint64_t>(box.origin[0] + b), position = static_cast<uint64_t>(box.origin[1] + s);
      if (name == kDocumentStartInput || name == kPositionsInput) {
        int64_t start = synthetic_document_start(static_cast<uint64_t>(step_), sample, box.origin[1] + s);
        *out++ = static_cast<int32_t>(name == kPositionsInput ? box.origin[1] + s - start : start);
        continue;
      }
      uint64_t word = random_word(random_stream(99, is_labels ? "labels" : "tokens"), static_cast<uint64_t>(step_),
                                  sample * 1000 + position);
      bool is_ignored = is_labels && (word >> 20) % 16 < sample % 5;
      *out++ = is_ignored ? -1 : static_cast<int32_t>(word % static_cast<uint64_t>(vocabulary));
    }
  }
  return Status::ok();
}

namespace {

/// A device with the kernels made on it; equal requests share one.
struct RankDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<KernelCache> kernels;

  static Result<RankDevice> open(const TrainingGraph& graph, const KernelTable& table, const TrainOptions& options,
                                 int ranks) {
    ALTIPLANO_ASSIGN(DeviceBackend * backend, PluginRegistry::instance().device(options.device));
    ALTIPLANO_ASSIGN(auto device, backend->open({options.threads, ranks}));
    auto kernels =
        std::make_unique<KernelCache>(*device, options.device, std::vector<const OpExtension*>(), graph.seed);
    kernels->choose(table);
    return RankDevice{std::move(device), std::move(kernels)};
  }
};

Result<std::vector<Program>> lower_all(const TrainingGraph& graph, const Plan& plan, const TrainOptions& options,
                                       KernelCache& kernels) {
  LoweringOptions lowering;
  lowering.fetch_logits = options.fetch_logits;
  lowering.workspace = [&](const Program& program, const ComputeInstruction& instruction) -> Result<int64_t> {
    ALTIPLANO_ASSIGN(Kernel * kernel, kernels.get(program, instruction));
    return kernel->workspace_bytes();
  };
  const bool is_bound = !options.binding.rank_of_slot.empty();
  return lower(graph, plan, make_timetable(plan), is_bound ? options.binding : Binding::identity(plan.num_slots()),
               lowering);
}

std::unique_ptr<InputSource> input_of(const TrainingGraph& graph, const TrainOptions& options, int64_t step) {
  if (options.input) return options.input(step);
  return std::make_unique<SyntheticInput>(graph, step);
}

Status run_steps(Executor& executor, const TrainingGraph& graph, const TrainOptions& options, RankResult& result) {
  const auto steps = static_cast<size_t>(options.steps);
  result.losses.reserve(steps);
  result.norms.reserve(steps);
  result.applied.reserve(steps);
  const Executor::Decide decide = [&](const StepTotals& totals, StepScalars& s) {
    StepDecision decision = decide_step(totals, options.clip);
    s.gradient_scale = decision.gradient_scale;
    result.losses.push_back(totals.loss());
    result.norms.push_back(decision.gradient_norm);
    result.applied.push_back(decision.applies);
    return decision.applies;
  };
  for (int i = 0; i < options.steps; ++i) {
    StepScalars scalars;
    scalars.step = options.first_step + i;
    scalars.learning_rate = options.learning_rate;
    if (options.before_step) options.before_step(executor, scalars.step);
    auto input = input_of(graph, options, scalars.step);
    ALTIPLANO_RETURN_IF_ERROR(executor.run_step(*input, scalars, decide));
  }
  if (!options.validate) return Status::ok();
  auto input = input_of(graph, options, 1'000'000);
  ALTIPLANO_ASSIGN(StepTotals totals, executor.run_validation(*input));
  result.validation.push_back(totals.loss());
  result.logits = executor.logits();
  return Status::ok();
}

/// Everything one rank does; `programs` of all ranks if they are lowered already.
Status run_rank(const TrainingGraph& graph, const Plan& plan, const TrainOptions& options,
                const std::vector<Program>* programs, Rendezvous& rendezvous, RankResult& result) {
  ALTIPLANO_ASSIGN(CommBackend * comm, PluginRegistry::instance().comm(options.comm));
  ALTIPLANO_ASSIGN(RankDevice own, RankDevice::open(graph, plan.kernels, options, rendezvous.world_size()));
  std::vector<Program> lowered;
  if (!programs) {
    ALTIPLANO_ASSIGN(lowered, lower_all(graph, plan, options, *own.kernels));
    ALTIPLANO_RETURN_IF_ERROR(verify_programs(lowered));
    programs = &lowered;
  }
  Program program = (*programs)[rendezvous.rank().index()];
  if (options.tamper) options.tamper(program);
  CommOptions comm_options;
  comm_options.deadline = std::chrono::seconds(60);
  ALTIPLANO_ASSIGN(auto communicator, comm->connect(rendezvous, comm_options));
  auto body = [&]() -> Status {
    ALTIPLANO_ASSIGN(auto executor, Executor::create(program, *own.device, *communicator, *own.kernels));
    ALTIPLANO_RETURN_IF_ERROR(executor->initialize(graph.seed));
    if (options.start) restore_state(*executor, *options.start);
    result.initial = take_state(*executor);
    ALTIPLANO_RETURN_IF_ERROR(run_steps(*executor, graph, options, result));
    result.final = take_state(*executor);
    result.predicted_bytes = program.peak().value;
    result.peak_bytes = own.device->peak_allocated().value;
    return Status::ok();
  };
  Status status = body();
  if (!status.is_ok()) communicator->abort(status.to_string());
  return status;
}

Status run_threads(const TrainingGraph& graph, const Plan& plan, const TrainOptions& options,
                   std::vector<RankResult>& results) {
  ALTIPLANO_ASSIGN(RankDevice scratch, RankDevice::open(graph, plan.kernels, options, plan.num_slots()));
  ALTIPLANO_ASSIGN(auto programs, lower_all(graph, plan, options, *scratch.kernels));
  ALTIPLANO_RETURN_IF_ERROR(verify_programs(programs));
  return run_ranks(plan.num_slots(), [&](Rendezvous& rendezvous) {
    return run_rank(graph, plan, options, &programs, rendezvous, results[rendezvous.rank().index()]);
  });
}

Status run_processes(const TrainingGraph& graph, const Plan& plan, const TrainOptions& options,
                     std::vector<RankResult>& results) {
  TemporaryDirectory directory;
  auto file = [&](size_t rank) { return directory / fmt::format("rank{}", rank); };
  auto statuses = run_processes_all(plan.num_slots(), [&](Rendezvous& rendezvous) -> Status {
    RankResult result;
    ALTIPLANO_RETURN_IF_ERROR(run_rank(graph, plan, options, nullptr, rendezvous, result));
    write_bytes(file(rendezvous.rank().index()), serialize(result));
    return Status::ok();
  });
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    if (!statuses[rank].is_ok()) return Status(statuses[rank]).with_context(fmt::format("on rank {}", rank));
    results[rank] = deserialize(read_bytes(file(rank)));
  }
  return Status::ok();
}

}  // namespace

TrainResult train(const TrainingGraph& graph, const Plan& plan, const TrainOptions& options) {
  std::vector<RankResult> results(static_cast<size_t>(plan.num_slots()));
  Status status =
      options.processes ? run_processes(graph, plan, options, results) : run_threads(graph, plan, options, results);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), plan.to_yaml() << status.to_string());
  return merge(results);
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
