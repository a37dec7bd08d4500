#pragma once
// What rank 0 shows: banner, step lines, a progress bar with ETA on a terminal. Plain lines elsewhere.
#include <string>

#include "framework/runtime/job.hpp"
#include "framework/runtime/metrics.hpp"

namespace altiplano {

struct BannerFacts {
  std::string device, comm, host;
  int threads = 1;  ///< of each rank
  int64_t training_tokens = 0;
  std::string data_name, checkpoint_directory;
  Bytes checkpoint_bytes, free_bytes;
};

/// Several lines, without a trailing newline.
std::string banner_text(const Job& job, const BannerFacts& facts);
/// "start     step 1 of 400; predicted 12.3 s a step, ...": what is waited for until the first step line.
std::string start_line(int64_t first_step, int64_t max_steps, Seconds predicted);
/// "step:   10/400  loss: 3.2127  grad_norm: 1.912  lr: 1.0e-04  tps: 21,340  memory: 31.5MiB  eta: 0:02:31"
std::string step_line(const StepMetrics& metrics, int64_t max_steps, Bytes memory, Seconds eta);

class Progress {
 public:
  /// columns 0: no terminal.
  Progress(int64_t first_step, int64_t max_steps, int64_t log_every, int columns, Bytes memory);
  void step(const StepMetrics& metrics);
  /// A line of its own (validation, checkpoint).
  void note(const std::string& text);

 private:
  void draw_bar(int64_t step, Seconds eta);
  void clear_bar();
  int64_t first_step_, max_steps_, log_every_;
  int columns_;
  Bytes memory_;
  double seconds_ = 0;
  bool bar_is_drawn_ = false;
};

}  // namespace altiplano
