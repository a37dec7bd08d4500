#include "framework/conformance/device_cases.hpp"

#include <cmath>

#include "framework/base/random.hpp"
#include "framework/kernels/bfloat16.hpp"

namespace altiplano::conformance {
namespace {

OperandLayout layout_of(const CaseOperand& operand, DType dtype) {
  OperandLayout layout;
  layout.dtype = dtype;
  layout.extents = operand.extents;
  layout.origin = operand.origin.empty() ? std::vector<int64_t>(operand.extents.size(), 0) : operand.origin;
  layout.global = operand.global;
  if (layout.global.empty()) {
    for (size_t i = 0; i < layout.extents.size(); ++i) layout.global.push_back(layout.origin[i] + layout.extents[i]);
  }
  layout.batch_dim = operand.batch_dim;
  return layout;
}

/// The case's types with the one under test, or all f64.
DType typed(DType dtype, DType under_test) {
  if (under_test == DType::kF64) return is_floating(dtype) ? DType::kF64 : dtype;
  return dtype == kTested ? under_test : dtype;
}

double rounded(double value, DType dtype) {
  if (dtype == DType::kF32) return static_cast<double>(static_cast<float>(value));
  if (dtype == DType::kBF16)
    return static_cast<double>(float_from_bfloat16(bfloat16_from_float(static_cast<float>(value))));
  return value;
}

std::vector<double> elements_of(const CaseOperand& operand, DType dtype, uint64_t stream) {
  std::vector<double> out(static_cast<size_t>(num_elements(operand.extents)));
  for (size_t i = 0; i < out.size(); ++i) {
    const double normal = random_normal(stream, 0, i), uniform = random_uniform(stream, 1, i);
    switch (operand.fill) {
      case Fill::kNormal:
        out[i] = rounded(normal, dtype);
        break;
      case Fill::kPositive:
        out[i] = rounded(0.5 + uniform, dtype);
        break;
      case Fill::kSorted:
        out[i] = rounded(3.0 + uniform, dtype);
        break;
      case Fill::kSmallIds:
        out[i] = std::floor(uniform * 11);
        break;
      case Fill::kLabels:
        out[i] = uniform < 0.25 ? -1 : std::floor(uniform * 11);
        break;
    }
  }
  return out;
}

}  // namespace

KernelRequest request_of(const DeviceCase& c, DType under_test) {
  KernelRequest request;
  request.kind = c.kind;
  request.attributes = c.attributes;
  if (c.attributes.has("dtype")) {
    const DType named = *dtype_from_string(c.attributes.get_string("dtype"));
    request.attributes.set("dtype", std::string(to_string(typed(named, under_test))));
  }
  request.seed = 17;
  request.form = c.form;
  for (const CaseOperand& operand : c.inputs)
    request.inputs.push_back(layout_of(operand, typed(operand.dtype, under_test)));
  for (const CaseOperand& operand : c.outputs)
    request.outputs.push_back(layout_of(operand, typed(operand.dtype, under_test)));
  return request;
}

std::vector<std::vector<double>> inputs_of(const DeviceCase& c, DType under_test) {
  std::vector<std::vector<double>> out;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    out.push_back(elements_of(c.inputs[i], typed(c.inputs[i].dtype, under_test), random_stream(i, c.kind + c.name)));
  }
  return out;
}

CaseOperand x(Shape extents, Fill fill) {
  return {kTested, std::move(extents), fill};
}
CaseOperand acc(Shape extents, Fill fill) {
  return {kAcc, std::move(extents), fill};
}
CaseOperand ids(Shape extents, Fill fill) {
  return {DType::kI32, std::move(extents), fill};
}
CaseOperand f64(Shape extents) {
  return {DType::kF64, std::move(extents)};
}
CaseOperand box(Shape extents, std::vector<int64_t> origin, Shape global, DType dtype) {
  return {dtype, std::move(extents), Fill::kNormal, std::move(origin), std::move(global), 0};
}

DeviceCase product(const std::string& equation, Shape a, Shape b, Shape c, DType out) {
  return {equation + to_string(a),
          "matmul",
          {{"equation", equation}, {"dtype", std::string(to_string(out))}},
          {x(a), x(b)},
          {{out, c}}};
}

const std::vector<DeviceCase>& device_cases() {
  static const std::vector<DeviceCase> all = [] {
    std::vector<DeviceCase> cases;
    add_compute_cases(cases);
    add_data_cases(cases);
    return cases;
  }();
  return all;
}

}  // namespace altiplano::conformance
