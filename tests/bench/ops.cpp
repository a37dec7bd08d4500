// bench_ops: every op of a GPT's training step on device/cpu, on one rank. Products: the form that a kernel table would
// take against oneDNN's plain matmul and against its sgemm. Everything else: the time that its counted bytes need at
// the bandwidth measured in the same round, over the time it takes.
//
//   bench_ops [--model gpt6|gpt2|tiny] [--precision fp32|bf16] [--threads N] [--rounds N]
#include <memory>
#include <set>

#include "framework/base/text.hpp"
#include "framework/runtime/device_buffers.hpp"
#include "framework/runtime/kernel_choice.hpp"
#include "framework/simulate/plan_estimate.hpp"
#include "tests/bench/bench_job.hpp"

namespace altiplano::bench {
namespace {

/// A kernel with operands of its own.
class Bound {
 public:
  Bound(Device& device, KernelRequest request) : memory_(device) {
    kernel_ = require(device.make_kernel(request));
    for (const auto* side : {&request.inputs, &request.outputs})
      for (const OperandLayout& operand : *side) {
        void* memory = require(memory_.add(bytes_of(operand)));
        side == &request.inputs ? inputs_.push_back(memory) : outputs_.push_back(memory);
      }
    workspace_ = require(memory_.add(kernel_->workspace_bytes()));
  }
  void run() { require(kernel_->run({inputs_, outputs_, &scalars_, 0, workspace_})); }

 private:
  DeviceBuffers memory_;
  std::unique_ptr<Kernel> kernel_;
  StepScalars scalars_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  void* workspace_ = nullptr;
};

/// One op of the step: equal ones are counted.
struct StepOp {
  KernelRequest request;
  OpWork work;
  int calls = 0;
};

std::vector<StepOp> ops_of(const Program& program, uint64_t seed) {
  std::vector<StepOp> ops;
  std::map<std::string, size_t> known;
  for (const TimetableEntry& entry : program.step)
    for (const Instruction& instruction : program.blocks[entry.block.index()].instructions) {
      const auto* compute = std::get_if<ComputeInstruction>(&instruction.what);
      if (compute == nullptr) continue;
      KernelRequest request = kernel_request(program, *compute, seed);
      std::string key = request.kind + request.attributes.get_string("equation", "");
      for (const auto* side : {&request.inputs, &request.outputs})
        for (const OperandLayout& o : *side)
          key += fmt::format(" {}{}", to_string(o.dtype), altiplano::to_string(o.extents));
      const auto [at, is_new] = known.emplace(key, ops.size());
      if (is_new) ops.push_back({std::move(request), work_of(program, *compute), 0});
      ++ops[at->second].calls;
    }
  return ops;
}

/// a = b + s c over arrays beyond every cache: 12 bytes an element.
class Triad {
 public:
  explicit Triad(size_t elements) : a_(elements), b_(elements, 1.0f), c_(elements, 2.0f) {}
  double bytes() const { return 12.0 * static_cast<double>(a_.size()); }
  void run(int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t i = 0; i < a_.size(); ++i) a_[i] = b_[i] + 0.5f * c_[i];
  }

 private:
  std::vector<float> a_, b_, c_;
};

void race_products(JobDevice& job, const std::vector<StepOp>& ops, int rounds) {
  print_out("{:<36} {:>5} {:<9} {:>22} {:>8} {:>22} {:>22}\n", "product", "calls", "form", "ms (quartiles)", "GFLOP/s",
            "plain / chosen", "sgemm / chosen");
  double chosen_seconds = 0, plain_seconds = 0;
  for (const StepOp& op : ops) {
    const KernelForms forms = require(job.device().forms(op.request));
    if (op.request.kind != "matmul" || forms.names.empty()) continue;
    const KernelMeasurement m = require(measure_forms(job.device(), {op.request, forms}, job.machine()));
    std::vector<std::unique_ptr<Bound>> bound;
    std::vector<Contestant> contestants;
    for (const std::string& form : {m.best, std::string("plain"), std::string("sgemm")}) {
      if (std::ranges::find(forms.names, form) == forms.names.end()) continue;
      KernelRequest request = op.request;
      request.form = form;
      bound.push_back(std::make_unique<Bound>(job.device(), request));
      contestants.push_back({form, [kernel = bound.back().get()] { kernel->run(); }});
    }
    race(contestants, rounds);
    const Spread own = spread_of(contestants[0].seconds);
    chosen_seconds += op.calls * own.median;
    plain_seconds += op.calls * spread_of(contestants[1].seconds).median;
    print_out("{:<36} {:>5} {:<9} {:>22} {:>8.1f} {:>22} {:>22}\n", forms.shape, op.calls, m.best,
              to_string(own, 1e3, 3), op.work.flops.value / own.median * 1e-9,
              to_string(ratio(contestants[1], contestants[0]), 1, 2),
              contestants.size() > 2 ? to_string(ratio(contestants[2], contestants[0]), 1, 2) : "-");
    flush_out();
  }
  print_out("{:<36} {:>5} {:<9} {:>22} {:>8} {:>22}\n\n", "all products of a step", "", "",
            fmt::format("{:.1f}", chosen_seconds * 1e3), "", fmt::format("{:.2f}", plain_seconds / chosen_seconds));
}

void race_loops(JobDevice& job, const std::vector<StepOp>& ops, int rounds, size_t elements) {
  const int threads = job.device().info().threads;
  print_out("{:<24} {:<28} {:>5} {:>22} {:>8} {:>24}\n", "op", "first operand", "calls", "ms (quartiles)", "GB/s",
            "bytes at triad's rate / it");
  Triad triad(elements);
  for (const StepOp& op : ops) {
    if (op.request.kind == "matmul") continue;
    Bound bound(job.device(), op.request);
    std::vector<Contestant> contestants = {{"op", [&] { bound.run(); }}, {"triad", [&] { triad.run(threads); }}};
    race(contestants, rounds);
    const auto bytes = static_cast<double>(op.work.bytes.value);
    Contestant floor = contestants[1];
    for (double& seconds : floor.seconds) seconds *= bytes / triad.bytes();
    const Spread own = spread_of(contestants[0].seconds);
    const OperandLayout& first = op.request.inputs.empty() ? op.request.outputs[0] : op.request.inputs[0];
    print_out("{:<24} {:<28} {:>5} {:>22} {:>8.2f} {:>24}\n", op.request.kind,
              fmt::format("{} {}", to_string(first.dtype), altiplano::to_string(first.extents)), op.calls,
              to_string(own, 1e3, 3), bytes / own.median * 1e-9, to_string(ratio(floor, contestants[0]), 1, 2));
    flush_out();
  }
}

int run(int argc, char** argv) {
  const std::string name = argument(argc, argv, "model", "gpt6");
  const int rounds = std::stoi(argument(argc, argv, "rounds", "9"));
  const BenchFolder folder;
  folder.write("job.yaml", job_text(bench_model(name), argument(argc, argv, "precision", "fp32"), 1, folder));
  JobRequest request;
  request.threads = std::stoi(argument(argc, argv, "threads", "0"));
  const Job job = require(prepare_job(load(folder), request));
  print_out("{}, {}, {}\n\n", name, to_string(job.plan.compute_dtype), job.device->machine());
  const std::vector<StepOp> ops = ops_of(job.programs[0], job.graph->seed);
  race_products(*job.device, ops, rounds);
  race_loops(*job.device, ops, rounds, name == "tiny" ? 1 << 16 : 1 << 24);
  return 0;
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  return altiplano::bench::run(argc, argv);
}
