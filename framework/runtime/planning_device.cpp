#include "framework/runtime/planning_device.hpp"

#include "framework/config/job_values.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano {

Result<std::unique_ptr<PlanningDevice>> PlanningDevice::open(const Options& options, int num_ranks, uint64_t seed) {
  auto& registry = PluginRegistry::instance();
  const std::string& kind = options.get_string("device.kind");
  ALTIPLANO_ASSIGN(DeviceBackend * backend, registry.device(kind));
  auto result = std::make_unique<PlanningDevice>();
  ALTIPLANO_ASSIGN(result->device_, backend->open(job_device_options(options, num_ranks)));
  ALTIPLANO_ASSIGN(auto extensions, registry.ops());
  result->kernels_ = std::make_unique<KernelCache>(*result->device_, kind, extensions, seed);
  return result;
}

LoweringOptions PlanningDevice::lowering() {
  LoweringOptions options;
  options.workspace = [this](const Program& program, const ComputeInstruction& instruction) -> Result<int64_t> {
    ALTIPLANO_ASSIGN(Kernel * kernel, kernels_->get(program, instruction));
    return kernel->workspace_bytes();
  };
  return options;
}

}  // namespace altiplano
