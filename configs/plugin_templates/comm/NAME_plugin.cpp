// The adapter: ranks are processes of one host that map one piece of memory; everything above it (messages,
// collectives, deadlines, who is blamed) is the framework's segment transport. For another wire, write a Communicator
// of your own: framework/api/comm.hpp says what it owes.
#include <exception>
#include <optional>

#include "@name@_memory.hpp"
#include "framework/api/comm.hpp"
#include "framework/api/register.hpp"
#include "framework/api/segment/segment_transport.hpp"

namespace {

using namespace altiplano;

constexpr uint64_t kCapabilities = kCommNeedsHostProgress | kCommDeterministic | kCommBetweenProcesses;

class @Name@Plugin final : public CommBackend {
 public:
  uint64_t capabilities() const noexcept override { return kCapabilities; }

  /// Rank 0 makes the memory and tells the others where; the fences keep it until all have mapped it.
  Result<std::unique_ptr<Communicator>> connect(Rendezvous& rendezvous, const CommOptions& options) noexcept override
      try {
    SegmentAttachment attachment;
    attachment.scope = FutexScope::kShared;
    attachment.shape = segment_shape(rendezvous.world_size(), options.chunk_bytes);
    const size_t bytes = segment_bytes(attachment.shape);
    std::optional<@name@_plugin::SharedMemory> made;
    if (rendezvous.rank().value == 0) {
      ALTIPLANO_ASSIGN(made, @name@_plugin::make_memory(bytes));
      initialize_segment(made->memory.get(), attachment.shape);
      ALTIPLANO_RETURN_IF_ERROR(rendezvous.put("comm/@name@", made->path));
      attachment.memory = made->memory;
    }
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(options.deadline));
    if (!made) {
      ALTIPLANO_ASSIGN(const std::string path, rendezvous.get(RankId(0), "comm/@name@"));
      ALTIPLANO_ASSIGN(attachment.memory, @name@_plugin::attach_memory(path, bytes));
    }
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(options.deadline));
    return open_segment_communicator(rendezvous, options, std::move(attachment));
  } catch (const std::exception& e) {
    return runtime_failure("comm/@name@: {}", e.what());
  }
};

}  // namespace

ALTIPLANO_REGISTER_PLUGIN(altiplano::CommBackend, @Name@Plugin, ALTIPLANO_PLUGIN_NAME, ALTIPLANO_PLUGIN_VERSION,
                          kCapabilities, "processes of one host over memory without a name")
