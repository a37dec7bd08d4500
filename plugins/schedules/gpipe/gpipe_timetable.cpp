#include "gpipe_timetable.hpp"

namespace altiplano::gpipe {

Status check_request(const ScheduleRequest& request) {
  int m = request.num_microbatches;
  if (request.num_stages < 1)
    return invalid_argument("schedule gpipe: {} stages; nearest legal value: 1", request.num_stages);
  if (m < 1) return invalid_argument("schedule gpipe: {} microbatches; nearest legal value: 1", m);
  if (request.chunks_per_worker != 1) {
    return invalid_argument(
        "schedule gpipe: {} chunks per worker; it places one stage on each worker; nearest legal value: 1",
        request.chunks_per_worker);
  }
  int64_t limit = request.max_microbatches_in_flight;
  if (limit < 0)
    return invalid_argument("schedule gpipe: at most {} microbatches in flight; nearest legal value: 0 (no limit)",
                            limit);
  if (limit != 0 && limit < m) {
    return invalid_argument(
        "schedule gpipe: at most {} microbatches in flight but gpipe keeps all {} of a step; nearest legal values: a "
        "limit of {}, or {} microbatches, or the schedule 1f1b",
        limit, m, m, limit);
  }
  return Status::ok();
}

Timetable build_timetable(int num_stages, int num_microbatches) {
  Timetable table;
  table.num_stages = num_stages;
  table.num_microbatches = num_microbatches;
  for (int p = 0; p < num_stages; ++p) {
    table.chunk_stage.push_back({StageId(p)});
    auto& actions = table.workers.emplace_back();
    for (int m = 0; m < num_microbatches; ++m) actions.push_back({ActionKind::kForward, m, 0});
    for (int m = 0; m < num_microbatches; ++m) actions.push_back({ActionKind::kBackward, m, 0});
  }
  return table;
}

}  // namespace altiplano::gpipe
