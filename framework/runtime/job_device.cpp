#include "framework/runtime/job_device.hpp"

#include "framework/base/plural.hpp"
#include "framework/config/job_values.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano {

namespace {

/// Devices refuse a kind they do not know in these words (api/device.hpp).
bool is_unknown_kind(const Status& status) {
  return status.message().find(kNoKernelForKind) != std::string::npos;
}

}  // namespace

Result<std::unique_ptr<JobDevice>> JobDevice::open(const Options& options, int num_ranks, int threads, uint64_t seed) {
  auto& registry = PluginRegistry::instance();
  const std::string& kind = options.get_string("device.kind");
  auto result = std::make_unique<JobDevice>();
  ALTIPLANO_ASSIGN(result->backend_, registry.device(kind));
  result->options_ = job_device_options(options, num_ranks);
  if (result->options_.threads == 0) result->options_.threads = threads;
  ALTIPLANO_ASSIGN(result->device_, result->open_another());
  ALTIPLANO_ASSIGN(auto extensions, registry.ops());
  result->kernels_ = std::make_unique<KernelCache>(*result->device_, kind, extensions, seed);
  return result;
}

Result<std::unique_ptr<Device>> JobDevice::open_another() const {
  return backend_->open(options_);
}

LoweringOptions JobDevice::lowering() {
  LoweringOptions options;
  options.workspace = [this](const Program& program, const ComputeInstruction& instruction) -> Result<int64_t> {
    auto kernel = kernels_->get(program, instruction);
    if (kernel.is_ok()) return (*kernel)->workspace_bytes();
    if (!passes_over_missing_ || !is_unknown_kind(kernel.status())) return kernel.status();
    if (missing_kernel_.empty()) missing_kernel_ = kernel.status().message();
    return 0;
  };
  return options;
}

std::string JobDevice::machine() const {
  const DeviceInfo& info = device_->info();
  return fmt::format("{}{}; {}", info.hardware.empty() ? "" : info.hardware + "; ", info.name,
                     counted(info.threads, "thread"));
}

}  // namespace altiplano
