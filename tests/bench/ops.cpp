// bench_ops: every op of a GPT's training step on device/cpu, on one rank. Products: the form that a kernel table would
// take against oneDNN's plain matmul and against its sgemm. Everything else: the time that its counted bytes need at
// the bandwidth measured in the same round, over the time it takes. At the end the account of the step: what each class
// of ops takes, and what it would take at the ceilings that this run has met.
//
//   bench_ops [--model gpt6|gpt2|tiny] [--precision fp32|bf16] [--threads N] [--rounds N]
#include <memory>

#include "tests/bench/step_account.hpp"
#include "tests/bench/step_ops.hpp"

namespace altiplano::bench {
namespace {

void race_products(JobDevice& job, const std::vector<StepOp>& ops, int rounds, StepAccount& account) {
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
    account.add(op, own.median);
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

void race_loops(JobDevice& job, const std::vector<StepOp>& ops, int rounds, size_t elements, StepAccount& account) {
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
    account.add(op, own.median);
    account.note_bandwidth(triad.bytes() / spread_of(contestants[1].seconds).median);
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
  StepAccount account;
  race_products(*job.device, ops, rounds, account);
  race_loops(*job.device, ops, rounds, name == "tiny" ? 1 << 16 : 1 << 24, account);
  account.print();
  return 0;
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  return altiplano::bench::run(argc, argv);
}
