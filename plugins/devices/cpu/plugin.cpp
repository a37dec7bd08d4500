// device/cpu: the adapter.
#include "framework/api/register.hpp"
#include "plugins/devices/cpu/cpu_device.hpp"

namespace altiplano::cpu {

class CpuBackend final : public DeviceBackend {
 public:
  std::vector<std::string> fused_kinds() const noexcept override {
    return {"bias_gelu", "residual_add", "packed_attention"};
  }
  Result<std::unique_ptr<Device>> open(const DeviceOptions& options) noexcept override try {
    return std::unique_ptr<Device>(std::make_unique<CpuDevice>(options));
  } catch (const std::exception& error) {
    return runtime_failure("device/cpu: cannot open: {}", error.what());
  }
};

}  // namespace altiplano::cpu

ALTIPLANO_REGISTER_PLUGIN(altiplano::DeviceBackend, altiplano::cpu::CpuBackend, "device/cpu", ALTIPLANO_PLUGIN_VERSION,
                          0, "this host's CPU: oneDNN products and own loops, f32 and bf16")
