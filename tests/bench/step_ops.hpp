#pragma once
// The ops of a training step as kernels that run alone, and the rate at which memory can be read and written.
#include <memory>

#include "framework/base/text.hpp"
#include "framework/runtime/device_buffers.hpp"
#include "framework/runtime/kernel_choice.hpp"
#include "framework/simulate/program_prices.hpp"
#include "tests/bench/bench_job.hpp"

namespace altiplano::bench {

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

inline std::vector<StepOp> ops_of(const Program& program, uint64_t seed) {
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

}  // namespace altiplano::bench
