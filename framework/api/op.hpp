#pragma once
// Op plugins: new op kinds (definition) and their kernels per device kind.
#include <memory>
#include <string>
#include <vector>

#include "framework/api/device.hpp"
#include "framework/api/plugin.h"
#include "framework/graph/op_definition.hpp"

namespace altiplano {

class OpExtension {
 public:
  static constexpr uint32_t kKind = ALTIPLANO_PLUGIN_OP;
  static constexpr uint32_t kInterfaceVersion = 1;
  virtual ~OpExtension() = default;
  virtual std::vector<OpDefinition> definitions() const = 0;
  /// A kernel for `device_kind` ("cpu", "reference"), or a refusal. The host asks here for kinds the device itself does
  /// not know.
  virtual Result<std::unique_ptr<Kernel>> make_kernel(const std::string& device_kind,
                                                      const KernelRequest& request) const noexcept = 0;
};

}  // namespace altiplano
