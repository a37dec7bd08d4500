// Family optimizer: adamw and sgd, f32, each output written over the input of the same role.
#include "framework/kernels/pointwise.hpp"
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {
namespace {

constexpr int64_t kGrain = 8192;

ALTIPLANO_CLONES void adamw_range(int64_t begin, int64_t end, AdamW rule, const float* w, const float* g,
                                  const float* m, const float* v, float* new_w, float* new_m, float* new_v) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    float weight = w[i], mean = m[i], variance = v[i];
    rule.update(weight, g[i], mean, variance);
    new_w[i] = weight;
    new_m[i] = mean;
    new_v[i] = variance;
  }
}

ALTIPLANO_CLONES void sgd_range(int64_t begin, int64_t end, Sgd rule, const float* w, const float* g, const float* m,
                                float* new_w, float* new_m) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    float weight = w[i], momentum = m[i];
    rule.update(weight, g[i], momentum);
    new_w[i] = weight;
    new_m[i] = momentum;
  }
}

Status check_operands(const KernelRequest& request) {
  if (!same_dtypes(request.inputs, DType::kF32) || !same_dtypes(request.outputs, DType::kF32)) {
    return refuse_dtype(request, "f32 (bf16 training keeps f32 master weights)");
  }
  for (const auto* side : {&request.inputs, &request.outputs}) {
    for (const OperandLayout& operand : *side) {
      if (operand.extents != request.inputs[0].extents) {
        return invalid_argument("device/cpu: {} of {} and {}: extents must be equal", request.kind,
                                to_string(request.inputs[0].extents), to_string(operand.extents));
      }
    }
  }
  return Status::ok();
}

AdamW rule_of_step(const Attributes& attributes, const StepScalars& step) {
  const double beta1 = attributes.get_float("beta1", 0.9), beta2 = attributes.get_float("beta2", 0.95);
  const auto t = static_cast<double>(step.step);
  AdamW rule;
  rule.gradient_scale = static_cast<float>(step.gradient_scale);
  rule.beta1 = static_cast<float>(beta1);
  rule.beta2 = static_cast<float>(beta2);
  rule.complement1 = static_cast<float>(1.0 - beta1);
  rule.complement2 = static_cast<float>(1.0 - beta2);
  rule.epsilon = static_cast<float>(attributes.get_float("epsilon", 1e-8));
  rule.weight_decay = static_cast<float>(attributes.get_float("weight_decay"));
  rule.learning_rate = static_cast<float>(step.learning_rate);
  rule.correction1 = static_cast<float>(1.0 / (1.0 - std::pow(beta1, t)));
  rule.correction2 = static_cast<float>(1.0 / (1.0 - std::pow(beta2, t)));
  return rule;
}

}  // namespace

ALTIPLANO_CPU_KERNEL(adamw) {
  ALTIPLANO_RETURN_IF_ERROR(check_operands(request));
  const int64_t n = num_elements(request.inputs[0].extents);
  return kernel_of([n, attributes = request.attributes, threads = context.threads](const KernelCall& call) {
    const AdamW rule = rule_of_step(attributes, *call.step);
    parallel_ranges(threads, n, kGrain, [&](int64_t begin, int64_t end) {
      adamw_range(begin, end, rule, input<float>(call, 0), input<float>(call, 1), input<float>(call, 2),
                  input<float>(call, 3), output<float>(call, 0), output<float>(call, 1), output<float>(call, 2));
    });
  });
}

ALTIPLANO_CPU_KERNEL(sgd) {
  ALTIPLANO_RETURN_IF_ERROR(check_operands(request));
  const int64_t n = num_elements(request.inputs[0].extents);
  const auto momentum = static_cast<float>(request.attributes.get_float("momentum"));
  const auto decay = static_cast<float>(request.attributes.get_float("weight_decay"));
  return kernel_of([n, momentum, decay, threads = context.threads](const KernelCall& call) {
    const Sgd rule{static_cast<float>(call.step->gradient_scale), momentum, decay,
                   static_cast<float>(call.step->learning_rate)};
    parallel_ranges(threads, n, kGrain, [&](int64_t begin, int64_t end) {
      sgd_range(begin, end, rule, input<float>(call, 0), input<float>(call, 1), input<float>(call, 2),
                output<float>(call, 0), output<float>(call, 1));
    });
  });
}

}  // namespace altiplano::cpu
