#include "1f1b_timetable.hpp"
#include "framework/api/register.hpp"
#include "framework/api/schedule.hpp"

namespace altiplano::one_f_one_b {
namespace {

class OneForwardOneBackward final : public Schedule {
 public:
  Result<Timetable> build(const ScheduleRequest& request) const noexcept override {
    try {
      ALTIPLANO_RETURN_IF_ERROR(check_request(request));
      return build_timetable(request.num_stages, request.num_microbatches, request.max_microbatches_in_flight);
    } catch (const std::exception& e) {
      return runtime_failure("schedule 1f1b: {}", e.what());
    }
  }
};

}  // namespace
}  // namespace altiplano::one_f_one_b

ALTIPLANO_REGISTER_PLUGIN(
    altiplano::Schedule, altiplano::one_f_one_b::OneForwardOneBackward, "schedule/1f1b", ALTIPLANO_PLUGIN_VERSION, 0,
    "one forward, one backward in turn; keeps at most as many microbatches in flight as stages follow")
