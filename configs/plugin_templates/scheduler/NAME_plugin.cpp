// The adapter: a workload manager that tells of the job in environment variables.
#include <exception>

#include "@name@_allocation.hpp"
#include "framework/api/register.hpp"

namespace {

class @Name@ final : public altiplano::Scheduler {
 public:
  bool detect(const @name@::Environment& environment) const noexcept override {
    return @name@::is_present(environment);
  }

  altiplano::Result<altiplano::Allocation> allocation(const @name@::Environment& environment,
                                                      int ranks) const noexcept override {
    try {
      return @name@::read_allocation(environment, ranks);
    } catch (const std::exception& e) {
      return altiplano::runtime_failure("scheduler @name@: {}", e.what());
    }
  }
};

}  // namespace

ALTIPLANO_REGISTER_PLUGIN(altiplano::Scheduler, @Name@, ALTIPLANO_PLUGIN_NAME, "0.1.0", 0,
                          "jobs described by the variables @NAME@_JOB_ID and @NAME@_HOSTS")
