#pragma once
// Schedule plugins: pure functions (stages, microbatches, chunks, relative costs, memory limit) -> per-worker action
// lists and a stage-to-worker map. They never see tensors; the framework derives sends and receives, and verifies.
// Every schedule works for every stages 1-16 x microbatches 1-64 or refuses up front with the rule and the nearest
// legal values.
#include <cstdint>
#include <string>
#include <vector>

#include "framework/api/plugin.h"
#include "framework/base/status.hpp"
#include "framework/program/timetable.hpp"

namespace altiplano {

struct ScheduleRequest {
  int num_stages = 1;
  int num_microbatches = 1;
  int chunks_per_worker = 1;
  std::vector<double> forward_cost, backward_cost;  ///< per stage, relative; empty: equal, backward twice the forward
  int64_t max_microbatches_in_flight = 0;           ///< per worker; 0: no limit
};

class Schedule {
 public:
  static constexpr uint32_t kKind = ALTIPLANO_PLUGIN_SCHEDULE;
  static constexpr uint32_t kInterfaceVersion = 1;
  virtual ~Schedule() = default;
  /// The actions F and B of one step for every worker, in order (the framework appends U). Thread-safe,
  /// deterministic.
  virtual Result<Timetable> build(const ScheduleRequest& request) const noexcept = 0;
};

}  // namespace altiplano
