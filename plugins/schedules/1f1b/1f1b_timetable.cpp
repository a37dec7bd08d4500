#include "1f1b_timetable.hpp"

#include <algorithm>

namespace altiplano::one_f_one_b {

Status check_request(const ScheduleRequest& request) {
  if (request.num_stages < 1)
    return invalid_argument("schedule 1f1b: {} stages; nearest legal value: 1", request.num_stages);
  if (request.num_microbatches < 1) {
    return invalid_argument("schedule 1f1b: {} microbatches; nearest legal value: 1", request.num_microbatches);
  }
  if (request.chunks_per_worker != 1) {
    return invalid_argument(
        "schedule 1f1b: {} chunks per worker; it places one stage on each worker; nearest legal value: 1",
        request.chunks_per_worker);
  }
  if (request.max_microbatches_in_flight < 0) {
    return invalid_argument("schedule 1f1b: at most {} microbatches in flight; nearest legal values: 0 (no limit), 1",
                            request.max_microbatches_in_flight);
  }
  return Status::ok();
}

int num_in_flight(int num_stages, int num_microbatches, int stage, int64_t limit) {
  int most = std::min(num_microbatches, num_stages - stage);
  return limit == 0 ? most : static_cast<int>(std::min<int64_t>(most, limit));
}

static std::vector<Action> worker_actions(int num_microbatches, int in_flight) {
  std::vector<Action> actions;
  for (int m = 0; m < in_flight; ++m) actions.push_back({ActionKind::kForward, m, 0});
  for (int m = 0; m < num_microbatches; ++m) {
    actions.push_back({ActionKind::kBackward, m, 0});
    if (m + in_flight < num_microbatches) actions.push_back({ActionKind::kForward, m + in_flight, 0});
  }
  return actions;
}

Timetable build_timetable(int num_stages, int num_microbatches, int64_t limit) {
  Timetable table;
  table.num_stages = num_stages;
  table.num_microbatches = num_microbatches;
  for (int p = 0; p < num_stages; ++p) {
    table.chunk_stage.push_back({StageId(p)});
    table.workers.push_back(worker_actions(num_microbatches, num_in_flight(num_stages, num_microbatches, p, limit)));
  }
  return table;
}

}  // namespace altiplano::one_f_one_b
