#pragma once
// Op plugins: new op kinds (definition) and their kernels per device kind.
#include <memory>
#include <string>
#include <vector>

#include "framework/api/device.hpp"
#include "framework/api/plugin.h"
#include "framework/graph/op_definition.hpp"

namespace altiplano {

/// One use of an op kind, small, as the conformance suite tries it: gradients against finite differences, every
/// sharding strategy, every device against the reference.
struct OpSample {
  std::string kind;
  std::vector<ValueType> inputs;  ///< the suite tries floating types f64 and f32, whatever is written here
  Attributes attributes;
  int64_t num_ids = 4;  ///< elements of integer inputs are in 0..num_ids-1; those of floating ones in (0.5, 1.5)
};

class OpExtension {
 public:
  static constexpr uint32_t kKind = ALTIPLANO_PLUGIN_OP;
  static constexpr uint32_t kInterfaceVersion = 1;
  virtual ~OpExtension() = default;
  virtual std::vector<OpDefinition> definitions() const = 0;
  /// At least one per definition, with dims of at least 4 where they may be split.
  virtual std::vector<OpSample> samples() const = 0;
  /// A kernel for `device_kind` ("cpu", "reference"), or a refusal that names it. The host asks here for the kinds of
  /// definitions(), the device for all others. "reference" in f64 and f32 is owed: it is the oracle of the others.
  virtual Result<std::unique_ptr<Kernel>> make_kernel(const std::string& device_kind,
                                                      const KernelRequest& request) const noexcept = 0;
};

}  // namespace altiplano
