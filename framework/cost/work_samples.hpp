#pragma once
// From measured times of single ops to the curves of a device. Pure; framework/runtime/cluster_measurement.hpp
// measures.
#include <string>
#include <vector>

#include "framework/cluster/curves.hpp"

namespace altiplano {

/// Times of one op, or of a copy (kind "copy"), as a step or a trial runs it.
struct WorkSample {
  std::string kind;
  DType type = DType::kF32;
  double flops = 0, bytes = 0;  ///< bytes read and written
  int64_t smallest_dim = 0;     ///< of a matrix product; 0: none
  double calls = 0;             ///< it counts for as many
  double seconds = 0;           ///< of one call

  bool is_product() const { return smallest_dim > 0; }
};

/// Points by size, with rates: samples of about one size (a factor of `bin` at most) are one point of their mean;
/// points whose time would fall below a smaller one's are one with it.
Curve fit_rates(std::vector<std::pair<double, double>> sizes_and_seconds, std::vector<double> weights, double bin);

/// Times as they are, one point per size; those that fall below a smaller size's are one with it.
Curve fit_times(const std::vector<std::pair<double, double>>& sizes_and_seconds);

/// Products by type and class of smallest dimension, everything else by kind and type: by FLOPs where it does many of
/// them for each byte, else by bytes. "copy" is the memory curve. Sharing is left empty.
DeviceCurves fit_curves(const std::vector<WorkSample>& samples);

/// How many times longer the same work takes in `together` than in `alone`, sample by sample in the same order: of what
/// fit_curves prices by FLOPs, and of what it prices by bytes. At least 1.
struct SlowdownFit {
  double compute = 1, memory = 1;
};
SlowdownFit fit_slowdown(const std::vector<WorkSample>& alone, const std::vector<WorkSample>& together);

}  // namespace altiplano
