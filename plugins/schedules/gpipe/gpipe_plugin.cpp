#include "framework/api/register.hpp"
#include "framework/api/schedule.hpp"
#include "gpipe_timetable.hpp"

namespace altiplano::gpipe {
namespace {

class Gpipe final : public Schedule {
 public:
  Result<Timetable> build(const ScheduleRequest& request) const noexcept override {
    try {
      ALTIPLANO_RETURN_IF_ERROR(check_request(request));
      return build_timetable(request.num_stages, request.num_microbatches);
    } catch (const std::exception& e) {
      return runtime_failure("schedule gpipe: {}", e.what());
    }
  }
};

}  // namespace
}  // namespace altiplano::gpipe

ALTIPLANO_REGISTER_PLUGIN(altiplano::Schedule, altiplano::gpipe::Gpipe, "schedule/gpipe", ALTIPLANO_PLUGIN_VERSION, 0,
                          "all forwards, then all backwards; keeps every microbatch of a step in flight")
