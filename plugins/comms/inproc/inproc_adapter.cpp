// comm/inproc: the segment is memory of this process, found through the rendezvous.
#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include "framework/api/comm.hpp"
#include "framework/api/register.hpp"
#include "framework/api/segment/segment_transport.hpp"

namespace altiplano {
namespace {

constexpr uint64_t kCapabilities = kCommNeedsHostProgress | kCommDeterministic | kCommWithinProcess;

/// Rank 0 names the memory, so that a job may connect more than once.
Result<std::string> agree_on_key(Rendezvous& rendezvous, std::chrono::milliseconds deadline) {
  static std::atomic<uint64_t> connections{0};
  if (rendezvous.rank().value == 0)
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.put("comm/inproc", fmt::format("comm/inproc/{}", connections++)));
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(deadline));
  return rendezvous.get(RankId(0), "comm/inproc");
}

/// What one thread makes is there for all; a peer that still reads it when its owner is gone keeps it alive.
class ProcessMemory final : public SharedMemorySource {
 public:
  Result<Made> make(int64_t bytes) override {
    constexpr std::align_val_t kAlignment{64};
    void* memory = ::operator new(static_cast<size_t>(bytes), kAlignment);
    std::memset(memory, 0, static_cast<size_t>(bytes));
    auto* hold = new std::shared_ptr<void>(memory, [](void* p) { ::operator delete(p, kAlignment); });
    return Made{memory, {reinterpret_cast<uint64_t>(hold)}};
  }
  void unmake(const Made& made, int64_t /*bytes*/) override { delete hold_of(made.address); }
  Result<void*> map(const MemoryAddress& address, int64_t /*bytes*/) override {
    return mapped_.emplace_back(*hold_of(address)).get();
  }
  void unmap(void* memory, int64_t /*bytes*/) override {
    std::erase_if(mapped_, [memory](const std::shared_ptr<void>& held) { return held.get() == memory; });
  }

 private:
  static std::shared_ptr<void>* hold_of(const MemoryAddress& address) {
    return reinterpret_cast<std::shared_ptr<void>*>(address[0]);
  }
  std::vector<std::shared_ptr<void>> mapped_;
};

class InprocBackend final : public CommBackend {
 public:
  uint64_t capabilities() const noexcept override { return kCapabilities; }

  Result<std::unique_ptr<Communicator>> connect(Rendezvous& rendezvous, const CommOptions& options) noexcept override
      try {
    ALTIPLANO_ASSIGN(const std::string key, agree_on_key(rendezvous, options.deadline));
    SegmentAttachment attachment;
    attachment.arenas = std::make_shared<ProcessMemory>();
    attachment.shape = segment_shape(rendezvous.world_size(), options.chunk_bytes);
    attachment.memory = rendezvous.shared_in_process(key, segment_bytes(attachment.shape));
    if (attachment.memory == nullptr)
      return invalid_argument(
          "comm/inproc needs ranks that are threads of one process; for processes of one host use comm/shm");
    if (rendezvous.rank().value == 0) initialize_segment(attachment.memory.get(), attachment.shape);
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(options.deadline));
    return open_segment_communicator(rendezvous, options, std::move(attachment));
  } catch (const std::exception& e) {
    return runtime_failure("comm/inproc: {}", e.what());
  }
};

}  // namespace
}  // namespace altiplano

ALTIPLANO_REGISTER_PLUGIN(altiplano::CommBackend, altiplano::InprocBackend, "comm/inproc", ALTIPLANO_PLUGIN_VERSION,
                          altiplano::kCapabilities, "ranks as threads of one process, for tests and debuggers")
