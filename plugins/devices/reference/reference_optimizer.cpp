#include <cmath>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

/// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019).
template <typename T>
Form adamw(const KernelRequest& request) {
  const Attributes& a = request.attributes;
  double beta1 = a.get_float("beta1"), beta2 = a.get_float("beta2"), epsilon = a.get_float("epsilon"),
         decay = a.get_float("weight_decay");
  return {[=, n = num_elements(request.inputs[0].extents)](const KernelCall& call) {
    const StepScalars& step = *call.step;
    double correct1 = 1 - std::pow(beta1, static_cast<double>(step.step)),
           correct2 = 1 - std::pow(beta2, static_cast<double>(step.step));
    for (int64_t i = 0; i < n; ++i) {
      double w = static_cast<double>(input<T>(call, 0)[i]),
             g = static_cast<double>(input<T>(call, 1)[i]) * step.gradient_scale;
      double m = beta1 * static_cast<double>(input<T>(call, 2)[i]) + (1 - beta1) * g;
      double v = beta2 * static_cast<double>(input<T>(call, 3)[i]) + (1 - beta2) * g * g;
      double change = (m / correct1) / (std::sqrt(v / correct2) + epsilon) + decay * w;
      output<T>(call, 0)[i] = static_cast<T>(w - step.learning_rate * change);
      output<T>(call, 1)[i] = static_cast<T>(m);
      output<T>(call, 2)[i] = static_cast<T>(v);
    }
  }};
}

template <typename T>
Form sgd(const KernelRequest& request) {
  double momentum = request.attributes.get_float("momentum"), decay = request.attributes.get_float("weight_decay");
  return {[=, n = num_elements(request.inputs[0].extents)](const KernelCall& call) {
    const StepScalars& step = *call.step;
    for (int64_t i = 0; i < n; ++i) {
      double w = static_cast<double>(input<T>(call, 0)[i]);
      double g = static_cast<double>(input<T>(call, 1)[i]) * step.gradient_scale + decay * w;
      double m = momentum * static_cast<double>(input<T>(call, 2)[i]) + g;
      output<T>(call, 0)[i] = static_cast<T>(w - step.learning_rate * m);
      output<T>(call, 1)[i] = static_cast<T>(m);
    }
  }};
}

}  // namespace

void add_optimizer_kernels(Table& table) {
  table["adamw"] = {adamw<float>, adamw<double>};
  table["sgd"] = {sgd<float>, sgd<double>};
}

}  // namespace altiplano::reference
