#include "@name@_timetable.hpp"

#include <algorithm>

namespace @name@_plugin {

using namespace altiplano;

Status check_request(const ScheduleRequest& request) {
  if (request.num_stages < 1)
    return invalid_argument("schedule @name@: {} stages; nearest legal value: 1", request.num_stages);
  if (request.num_microbatches < 1)
    return invalid_argument("schedule @name@: {} microbatches; nearest legal value: 1", request.num_microbatches);
  if (request.chunks_per_worker != 1)
    return invalid_argument("schedule @name@: {} chunks per worker; nearest legal value: 1", request.chunks_per_worker);
  if (request.max_microbatches_in_flight < 0)
    return invalid_argument("schedule @name@: at most {} microbatches in flight; nearest legal value: 0 (no limit)",
                            request.max_microbatches_in_flight);
  return Status::ok();
}

Timetable wave_timetable(int num_stages, int num_microbatches, int wave) {
  Timetable table;
  table.num_stages = num_stages;
  table.num_microbatches = num_microbatches;
  for (int p = 0; p < num_stages; ++p) {
    table.chunk_stage.push_back({StageId(p)});
    auto& actions = table.workers.emplace_back();
    for (int first = 0; first < num_microbatches; first += wave) {
      const int end = std::min(first + wave, num_microbatches);
      for (int m = first; m < end; ++m) actions.push_back({ActionKind::kForward, m, 0});
      for (int m = first; m < end; ++m) actions.push_back({ActionKind::kBackward, m, 0});
    }
  }
  return table;
}

}  // namespace @name@_plugin
