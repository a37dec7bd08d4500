// The adapter: a workload manager that tells of the job in environment variables.
#include <exception>

#include "@name@_allocation.hpp"
#include "framework/api/register.hpp"

namespace {

class @Name@Plugin final : public altiplano::Scheduler {
 public:
  bool detect(const @name@_plugin::Environment& environment) const noexcept override {
    return @name@_plugin::is_present(environment);
  }

  altiplano::Result<altiplano::Allocation> allocation(const @name@_plugin::Environment& environment,
                                                      int ranks) const noexcept override {
    try {
      return @name@_plugin::read_allocation(environment, ranks);
    } catch (const std::exception& e) {
      return altiplano::runtime_failure("scheduler @name@: {}", e.what());
    }
  }
};

}  // namespace

ALTIPLANO_REGISTER_PLUGIN(altiplano::Scheduler, @Name@Plugin, ALTIPLANO_PLUGIN_NAME, ALTIPLANO_PLUGIN_VERSION, 0,
                          "jobs described by the variables @NAME@_JOB_ID and @NAME@_HOSTS")
