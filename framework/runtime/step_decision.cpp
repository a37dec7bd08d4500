#include "framework/runtime/step_decision.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace altiplano {

StepDecision decide_step(const StepTotals& totals, double clip) {
  StepDecision decision;
  bool is_finite = std::isfinite(totals.loss_sum) && std::isfinite(totals.norm_squared);
  if (!is_finite || totals.token_count <= 0) {
    decision.gradient_norm = totals.token_count > 0 ? std::sqrt(totals.norm_squared) / totals.token_count : 0;
    return decision;
  }
  decision.applies = true;
  decision.gradient_norm = std::sqrt(totals.norm_squared) / totals.token_count;
  double factor = clip > 0 && decision.gradient_norm > clip ? clip / decision.gradient_norm : 1.0;
  decision.gradient_scale = factor / totals.token_count;
  return decision;
}

double learning_rate_at(const LearningRate& rate, int64_t step) {
  if (step <= rate.warmup_steps) return rate.peak * static_cast<double>(step) / static_cast<double>(rate.warmup_steps);
  if (rate.shape == "constant") return rate.peak;
  double length = static_cast<double>(std::max<int64_t>(1, rate.decay_steps - rate.warmup_steps));
  double done = std::clamp(static_cast<double>(step - rate.warmup_steps) / length, 0.0, 1.0);
  double share = rate.shape == "linear" ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
  return rate.minimum + (rate.peak - rate.minimum) * share;
}

}  // namespace altiplano
