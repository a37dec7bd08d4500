#include <unistd.h>

#include <chrono>

#include "framework/api/register.hpp"
#include "framework/api/scheduler.hpp"
#include "local_allocation.hpp"

namespace altiplano::local {
namespace {

/// Unique per attempt: process ids come round again, so the start's time is part of it.
std::string new_job_id() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("local-{}-{}", std::chrono::duration_cast<std::chrono::milliseconds>(now).count(), getpid());
}

class Local final : public Scheduler {
 public:
  bool detect(const std::map<std::string, std::string>&) const noexcept override { return true; }

  Result<Allocation> allocation(const std::map<std::string, std::string>&, int ranks) const noexcept override {
    try {
      ALTIPLANO_ASSIGN(auto host, host_name());
      return make_allocation(new_job_id(), host, num_processors_allowed(), ranks);
    } catch (const std::exception& e) {
      return runtime_failure("scheduler local: {}", e.what());
    }
  }
};

}  // namespace
}  // namespace altiplano::local

ALTIPLANO_REGISTER_PLUGIN(altiplano::Scheduler, altiplano::local::Local, "scheduler/local", ALTIPLANO_PLUGIN_VERSION, 0,
                          "no workload manager: all ranks on this host")
