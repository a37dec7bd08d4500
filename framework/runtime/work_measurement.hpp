#pragma once
// Times of single ops on this rank's device: as they run within training steps of a job on one rank, and of trials
// (products of several sizes, copies) with memory that no cache holds.
#include "framework/cost/work_samples.hpp"
#include "framework/runtime/job.hpp"

namespace altiplano {

/// Training steps of a job on one rank, prepared so that the steps themselves can be run at a moment of choice.
class StepTrial {
 public:
  /// `batch`: samples of a step. `threads` as JobRequest::threads.
  static Result<std::unique_ptr<StepTrial>> prepare(const JobConfig& config, const std::string& precision,
                                                    int64_t batch, int threads);
  StepTrial(const StepTrial&) = delete;
  StepTrial& operator=(const StepTrial&) = delete;
  virtual ~StepTrial() = default;

  struct Times {
    std::vector<WorkSample> work;  ///< every op and copy of the program, in its order; seconds: the median of the steps
    double step = 0;               ///< median
    double spread = 0;             ///< between the quartiles of the steps, of the median
    double between = 0;            ///< of one instruction, beside what it does
  };
  virtual Result<Times> run(int steps) = 0;
  virtual JobDevice& device() = 0;
  virtual const std::string& model() const = 0;  ///< the graph's name

 protected:
  StepTrial() = default;
};

/// Matrix products of several sizes, forward and both gradients, in the fastest of the device's forms each.
Result<std::vector<WorkSample>> measure_products(JobDevice& device, DType type);
/// Copies of contiguous memory, of 4 KiB to 16 MiB.
Result<std::vector<WorkSample>> measure_copies(Device& device);

}  // namespace altiplano
