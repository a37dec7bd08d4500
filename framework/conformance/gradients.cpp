#include "framework/conformance/gradients.hpp"

#include <algorithm>
#include <cmath>

namespace altiplano::conformance {
namespace {

constexpr double kDelta = 1e-5;

Result<double> loss_at(const Kernels& kernels, const TrainingGraph& training, const Values& values) {
  ALTIPLANO_ASSIGN(Values all, run_graph(kernels, training.graph, values, {{}, training.seed, {Phase::kForward}}));
  return all.at(training.loss_sum)[0];
}

/// (loss above - loss below) / 2 delta for element i of a parameter.
Result<double> difference_at(const Kernels& kernels, const TrainingGraph& training, Values& values, ValueId parameter,
                             size_t i) {
  const double old = values.at(parameter)[i];
  values.at(parameter)[i] = old + kDelta;
  ALTIPLANO_ASSIGN(const double above, loss_at(kernels, training, values));
  values.at(parameter)[i] = old - kDelta;
  ALTIPLANO_ASSIGN(const double below, loss_at(kernels, training, values));
  values.at(parameter)[i] = old;
  return (above - below) / (2 * kDelta);
}

}  // namespace

Result<GradientError> gradient_error(const Kernels& kernels, const TrainingGraph& training, Values values,
                                     size_t per_parameter) {
  ALTIPLANO_ASSIGN(const Values all, run_graph(kernels, training.graph, values, {{}, training.seed}));
  GradientError worst;
  for (const ParameterTraining& entry : training.parameters) {
    const size_t size = values.at(entry.parameter).size(), stride = std::max<size_t>(1, size / per_parameter);
    for (size_t i = 0; i < size; i += stride) {
      double gradient = 0;
      for (ValueId contribution : entry.contributions) gradient += all.at(contribution)[i];
      ALTIPLANO_ASSIGN(const double difference, difference_at(kernels, training, values, entry.parameter, i));
      const double error = std::abs(difference - gradient) / std::max(1.0, std::abs(gradient));
      const int num_tried = worst.num_tried + 1;
      if (!(error <= worst.error))
        worst = {std::isnan(error) ? INFINITY : error, training.graph.value(entry.parameter).name, gradient, difference,
                 0};
      worst.num_tried = num_tried;
    }
  }
  return worst;
}

}  // namespace altiplano::conformance
