#pragma once
// Dividing layers and devices into pipeline stages by dynamic programming, after Alpa (Zheng et al., OSDI 2022, section
// 5) and TeraPipe (Li et al., ICML 2021): for every bound on the slowest stage, the least sum of stages that keep it,
// over layers x devices left x stages left. Stages are contiguous, take all devices, and may differ in what they take.
//
// The time of a step with B microbatches: sum of all stages and cuts + (B - 1) x the period + what the first stage does
// once per step, since it is the last to finish its backward. The period is that of the slowest stage; or, where a
// stage has no more microbatches in flight than stages are left (1F1B), the longest way there and back from a stage to
// the last one by the number of stages on it, if that is longer: cuts are on it.
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "framework/base/units.hpp"

namespace altiplano {

/// One stage with its layers and devices.
struct StagePrice {
  double microbatch = 0;  ///< seconds of forward and backward of one microbatch
  double step = 0;        ///< seconds once per step: gradients and update
  /// Its memory suffices where at most so many stages are left, itself included: they decide how many microbatches are
  /// in flight.
  int most_left = std::numeric_limits<int>::max();
};

struct StageQuestion {
  int layers = 1;
  int devices = 1;
  int microbatches = 1;
  int least_stages = 1, most_stages = 1;
  std::vector<int> option_devices;  ///< devices that each way to run a stage takes; ways may take equally many
  bool holds_back = false;          ///< the schedule keeps no more microbatches in flight than stages are left
  std::vector<double> cuts;         ///< [l]: seconds that a cut before layer l adds to a step, once; empty: free
  /// Divisions that take longer are of no interest: with one, any answer that takes less is the best, and there may be
  /// none.
  double most_seconds = std::numeric_limits<double>::infinity();
  /// Layers first .. end-1 run in way `option`. Nothing: not possible. Asked once each.
  std::function<std::optional<StagePrice>(int first, int end, int option)> price;
};

struct ChosenStage {
  int first = 0, end = 0, option = 0;
  auto operator<=>(const ChosenStage&) const = default;
};

struct StageAnswer {
  std::vector<ChosenStage> stages;
  double seconds = 0;
};

/// The least time, among equals the fewest stages. Nothing when no division is possible. Exact.
/// O(bounds x stages x layers x devices x stages that keep the bound); bounds: distinct times of stages that may be the
/// slowest. Where all ways take equally many devices, there is one number of stages and no choice of devices.
std::optional<StageAnswer> divide_into_stages(const StageQuestion& question);

/// The time of a step divided so; nothing when a stage is not possible.
std::optional<double> seconds_of(const StageQuestion& question, const std::vector<ChosenStage>& stages);

}  // namespace altiplano
