// comm/shm: the segment is a file of shared memory that rank 0 makes.
#include <map>
#include <optional>

#include "framework/api/comm.hpp"
#include "framework/api/register.hpp"
#include "framework/api/segment/segment_transport.hpp"
#include "plugins/comms/shm/shm_segment.hpp"

namespace altiplano {
namespace {

constexpr uint64_t kCapabilities = kCommNeedsHostProgress | kCommDeterministic | kCommBetweenProcesses;

/// What rank 0 tells the others: "at <address>" or "error <text>".
std::string announcement(const Result<ShmSegment>& segment) {
  return segment.is_ok() ? "at " + segment->address().to_string() : "error " + segment.status().message();
}

Result<ShmSegment> create_segment(const SegmentShape& shape) {
  auto segment = ShmSegment::create(shm_directory(), segment_bytes(shape));
  if (segment.is_ok()) initialize_segment(segment->memory().get(), shape);
  return segment;
}

Result<std::shared_ptr<void>> attach_segment(Rendezvous& rendezvous, const SegmentShape& shape) {
  ALTIPLANO_ASSIGN(const std::string text, rendezvous.get(RankId(0), "comm/shm"));
  const std::string rest = text.substr(text.find(' ') + 1);
  if (text.rfind("at ", 0) != 0) return Status(StatusCode::kCancelled, "rank 0 failed first: " + rest);
  ALTIPLANO_ASSIGN(const ShmAddress address, ShmAddress::parse(rest));
  return ShmSegment::attach(address, segment_bytes(shape));
}

/// Arenas: files without a name, mapped by the peers.
class ArenaFiles final : public SharedMemorySource {
 public:
  Result<Made> make(int64_t bytes) override {
    ALTIPLANO_ASSIGN(ShmSegment arena, ShmSegment::create_anonymous(static_cast<size_t>(bytes)));
    const ShmAddress at = arena.address();
    void* memory = arena.memory().get();
    made_.emplace(memory, std::move(arena));
    return Made{memory, {at.device, at.inode, static_cast<uint64_t>(at.process), static_cast<uint64_t>(at.file)}};
  }
  void unmake(const Made& made, int64_t /*bytes*/) override { made_.erase(made.memory); }
  Result<void*> map(const MemoryAddress& address, int64_t bytes) override {
    const ShmAddress at{address[0], address[1], static_cast<int>(address[2]), static_cast<int>(address[3])};
    ALTIPLANO_ASSIGN(std::shared_ptr<void> memory, ShmSegment::attach(at, static_cast<size_t>(bytes)));
    void* address_here = memory.get();
    mapped_.emplace(address_here, std::move(memory));
    return address_here;
  }
  void unmap(void* memory, int64_t /*bytes*/) override { mapped_.erase(memory); }

 private:
  std::map<void*, ShmSegment> made_;
  std::map<void*, std::shared_ptr<void>> mapped_;
};

class ShmBackend final : public CommBackend {
 public:
  uint64_t capabilities() const noexcept override { return kCapabilities; }

  Result<std::unique_ptr<Communicator>> connect(Rendezvous& rendezvous, const CommOptions& options) noexcept override
      try {
    SegmentAttachment attachment;
    attachment.scope = FutexScope::kShared;
    attachment.arenas = std::make_shared<ArenaFiles>();
    attachment.shape = segment_shape(rendezvous.world_size(), options.chunk_bytes);
    std::optional<Result<ShmSegment>> made;  // keeps the address until all are attached
    if (rendezvous.rank().value == 0) {
      made.emplace(create_segment(attachment.shape));
      ALTIPLANO_RETURN_IF_ERROR(rendezvous.put("comm/shm", announcement(*made)));
    }
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(options.deadline));
    if (made && !made->is_ok()) return made->status();
    if (made) {
      attachment.memory = (*made)->memory();
    } else {
      ALTIPLANO_ASSIGN(attachment.memory, attach_segment(rendezvous, attachment.shape));
    }
    return open_segment_communicator(rendezvous, options, std::move(attachment));
  } catch (const std::exception& e) {
    return runtime_failure("comm/shm: {}", e.what());
  }
};

}  // namespace
}  // namespace altiplano

ALTIPLANO_REGISTER_PLUGIN(altiplano::CommBackend, altiplano::ShmBackend, "comm/shm", ALTIPLANO_PLUGIN_VERSION,
                          altiplano::kCapabilities, "processes of one host over shared memory")
