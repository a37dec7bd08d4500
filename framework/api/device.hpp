#pragma once
// Device plugins: buffers, copies, streams and kernels by op kind. A kernel is made once at lowering time for fixed
// shapes, then run many times; it allocates nothing while running.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/api/comm.hpp"
#include "framework/api/plugin.h"
#include "framework/base/status.hpp"
#include "framework/base/units.hpp"
#include "framework/graph/graph.hpp"
#include "framework/sharding/box.hpp"

namespace altiplano {

/// One operand as a kernel is made for it: the local box of a global tensor (contiguous, row-major).
struct OperandLayout {
  DType dtype = DType::kF32;
  std::vector<int64_t> extents;  ///< local; any may be 0
  std::vector<int64_t> origin;   ///< global coordinate of the local first element, without the microbatch's offset
  Shape global;                  ///< the tensor's global shape
  int batch_dim = -1;            ///< dim to which KernelCall::batch_offset is added; -1: none
};

struct KernelRequest {
  std::string kind;
  Attributes attributes;
  std::vector<OperandLayout> inputs, outputs;
  uint64_t seed = 0;      ///< of random ops
  std::string form = {};  ///< one of Device::forms; empty: the first of them
};

/// The ways in which a device can make one kernel. They differ in speed and, by rounding, in results; all need the same
/// workspace, so that a plan's memory does not depend on which is taken.
struct KernelForms {
  std::string shape;               ///< what a kernel table knows the request by: requests of one shape have equal forms
  std::vector<std::string> names;  ///< the one that is taken when nobody chooses first; empty: there is one way only
};

/// Values that change per step; equal on all ranks.
struct StepScalars {
  int64_t step = 1;  ///< 1 for the first update
  double learning_rate = 0;
  double gradient_scale = 1;  ///< 1/token count x clipping
  bool training = true;       ///< false: dropout is the identity
};

struct KernelCall {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  const StepScalars* step = nullptr;
  int64_t batch_offset = 0;   ///< first sample of the microbatch within this replica's samples
  void* workspace = nullptr;  ///< workspace_bytes() of scratch, 64-byte aligned
};

/// "device/cpu has no kernel for op kind 'conv2d'".
inline constexpr const char* kNoKernelForKind = "no kernel for op kind";

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int64_t workspace_bytes() const noexcept { return 0; }
  virtual Status run(const KernelCall& call) noexcept = 0;
  /// The chosen form, for the Program text ("gemm nt, packed").
  virtual std::string describe() const { return {}; }
};

struct DeviceInfo {
  std::string name;      ///< "cpu (avx512, amx-bf16)"
  std::string hardware;  ///< the chip's own name, for telling machines apart; may be empty
  int threads = 1;       ///< compute threads of this rank
  Bytes memory;          ///< available to one rank
  std::vector<DType> dtypes;
  std::vector<DType> widened;   ///< those of them whose products are computed in a wider type, slower than in that one
  bool is_host_memory = false;  ///< allocate() gives memory that the host reads and writes as its own
};

struct DeviceOptions {
  int threads = 0;  ///< 0: from the affinity mask shared by `ranks_on_host`
  int ranks_on_host = 1;
};

/// One device as seen by one rank. Used by one thread.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const noexcept = 0;
  /// Zero-filled, 64-byte aligned. Fails with the numbers when memory is short.
  virtual Result<void*> allocate(int64_t bytes) noexcept = 0;
  /// Memory of the host that the caller keeps (a communicator's, which peers reach) counts as this device's and serves
  /// its kernels until free(), which leaves it as it is. Refused by devices that are not is_host_memory, and when it is
  /// more than there is left.
  virtual Status adopt(void* /*memory*/, int64_t /*bytes*/) noexcept {
    return invalid_argument("{} cannot compute in memory that it did not allocate", info().name);
  }
  virtual void free(void* memory) noexcept = 0;
  /// Bytes allocated or adopted and not freed, and the highest that has been.
  virtual Bytes allocated() const noexcept = 0;
  virtual Bytes peak_allocated() const noexcept = 0;
  /// In which forms make_kernel makes this. Which is the fastest is measured (framework/runtime/kernel_choice.hpp).
  virtual Result<KernelForms> forms([[maybe_unused]] const KernelRequest& request) noexcept { return KernelForms{}; }
  /// Refuses an op kind, dtype, shape or form it has no kernel for, naming it; a kind it knows in no type with the
  /// words kNoKernelForKind, by which what is only planned tells it from a wrong use.
  virtual Result<std::unique_ptr<Kernel>> make_kernel(const KernelRequest& request) noexcept = 0;
  /// destination[part] = or += source[part], strided (see BoxCopy). Empty parts are fine.
  virtual Status copy(const BoxCopy& boxes, DType dtype, const void* source, void* destination, bool add) noexcept = 0;
  /// These three: no bytes may be at no address (nullptr).
  virtual Status fill_zero(void* memory, int64_t bytes) noexcept = 0;
  virtual Status copy_from_host(void* destination, const void* source, int64_t bytes) noexcept = 0;
  virtual Status copy_to_host(void* destination, const void* source, int64_t bytes) noexcept = 0;
  /// Waits until everything issued on `stream` is done. Events order work across streams; a device whose calls complete
  /// before they return (the CPU) records done events.
  virtual Status synchronize(StreamKind stream) noexcept = 0;
  virtual Result<Event> record(StreamKind stream) noexcept = 0;
  virtual Status wait(StreamKind stream, Event event) noexcept = 0;
};

class DeviceBackend {
 public:
  static constexpr uint32_t kKind = ALTIPLANO_PLUGIN_DEVICE;
  static constexpr uint32_t kInterfaceVersion = 2;
  virtual ~DeviceBackend() = default;
  /// Fused kinds (framework/graph/fusion.hpp) that models are to be written in, because there are fast kernels of them
  /// and of their gradients.
  virtual std::vector<std::string> fused_kinds() const noexcept { return {}; }
  virtual Result<std::unique_ptr<Device>> open(const DeviceOptions& options) noexcept = 0;
};

}  // namespace altiplano
