#pragma once
// The device suite's cases: each op kind with odd sizes, boxes away from the origin, microbatches and empty extents.
//
// Inputs are rounded to their dtype first, and the oracle gets the same numbers in f64, so what is measured is the
// device's own rounding.
#include <string>
#include <vector>

#include "framework/api/device.hpp"

namespace altiplano::conformance {

constexpr DType kTested = DType::kBF16;  ///< in a case: the floating type under test
constexpr DType kAcc = DType::kF32;      ///< in a case: the accumulate type

/// What an operand's elements look like.
enum class Fill : uint8_t { kNormal, kPositive, kSmallIds, kLabels, kSorted };

struct CaseOperand {
  DType dtype;
  Shape extents;
  Fill fill = Fill::kNormal;
  std::vector<int64_t> origin = {};  ///< empty: zeros
  Shape global = {};                 ///< empty: origin + extents
  int batch_dim = -1;
};

struct DeviceCase {
  std::string name, kind;
  Attributes attributes;
  std::vector<CaseOperand> inputs, outputs;
  int64_t batch_offset = 0;
  StepScalars step = {};
  std::string form = {};  ///< one of Device::forms; empty: the device's first
  std::string to_string() const { return kind + " (" + name + (form.empty() ? "" : ", " + form) + ")"; }
};

const std::vector<DeviceCase>& device_cases();

// Operands: of the type under test, of the accumulate type, ids, f64.
CaseOperand x(Shape extents, Fill fill = Fill::kNormal);
CaseOperand acc(Shape extents, Fill fill = Fill::kNormal);
CaseOperand ids(Shape extents, Fill fill = Fill::kSmallIds);
CaseOperand f64(Shape extents);
/// A box of a global tensor whose dim 0 is the batch.
CaseOperand box(Shape extents, std::vector<int64_t> origin, Shape global, DType dtype = kTested);
DeviceCase product(const std::string& equation, Shape a, Shape b, Shape c, DType out = kTested);

/// Families in two files: what computes, and what moves, reduces and updates.
void add_compute_cases(std::vector<DeviceCase>& cases);
void add_data_cases(std::vector<DeviceCase>& cases);

/// The request for a case with `under_test` (or f64 everywhere) as its floating type, and its inputs.
KernelRequest request_of(const DeviceCase& c, DType under_test);
std::vector<std::vector<double>> inputs_of(const DeviceCase& c, DType under_test);

}  // namespace altiplano::conformance
