// The adapter: from the interface to the algorithm. No exception may leave build().
#include <algorithm>
#include <exception>

#include "@name@_timetable.hpp"
#include "framework/api/register.hpp"

namespace {

class @Name@Plugin final : public altiplano::Schedule {
 public:
  altiplano::Result<altiplano::Timetable> build(const altiplano::ScheduleRequest& request) const noexcept override {
    try {
      ALTIPLANO_RETURN_IF_ERROR(@name@_plugin::check_request(request));
      const int64_t limit = request.max_microbatches_in_flight, all = request.num_microbatches;
      const auto wave = static_cast<int>(limit == 0 ? all : std::min(limit, all));
      return @name@_plugin::wave_timetable(request.num_stages, request.num_microbatches, wave);
    } catch (const std::exception& e) {
      return altiplano::runtime_failure("schedule @name@: {}", e.what());
    }
  }
};

}  // namespace

ALTIPLANO_REGISTER_PLUGIN(altiplano::Schedule, @Name@Plugin, ALTIPLANO_PLUGIN_NAME, ALTIPLANO_PLUGIN_VERSION, 0,
                          "forwards and backwards in waves as large as the limit of microbatches in flight")
