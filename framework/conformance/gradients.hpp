#pragma once
// Gradients against central differences, in f64.
#include <string>

#include "framework/conformance/interpreter.hpp"

namespace altiplano::conformance {

/// Where a gradient is worst.
struct GradientError {
  double error = 0;  ///< relative to gradients above 1
  std::string parameter;
  double gradient = 0, difference = 0;
  int num_tried = 0;
};

/// Tries at most `per_parameter` elements of each trainable parameter, spread evenly. `values`: parameters and inputs.
Result<GradientError> gradient_error(const Kernels& kernels, const TrainingGraph& training, Values values,
                                     size_t per_parameter);

}  // namespace altiplano::conformance
