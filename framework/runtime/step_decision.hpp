#pragma once
// What every rank decides alone and alike at a step's boundary, from the totals of all ranks. Pure functions.
#include <cstdint>
#include <string>

#include "framework/runtime/executor.hpp"

namespace altiplano {

struct StepDecision {
  bool applies = false;       ///< false: weights stay as they are
  double gradient_norm = 0;   ///< of the mean loss's gradient, before clipping
  double gradient_scale = 0;  ///< 1 / tokens x clipping
};

/// clip 0: none. Not finite totals, or no valid token at all: the step is skipped.
StepDecision decide_step(const StepTotals& totals, double clip);

struct LearningRate {
  std::string shape = "constant";  ///< constant | linear | cosine
  double peak = 1e-3, minimum = 0;
  int64_t warmup_steps = 0, decay_steps = 0;
};

/// Rate of step `step` (1 for the first): linear warm-up from peak/warmup, then the shape down to `minimum` at
/// decay_steps.
double learning_rate_at(const LearningRate& rate, int64_t step);

}  // namespace altiplano
