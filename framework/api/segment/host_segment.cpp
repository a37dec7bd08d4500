#include "framework/api/segment/host_segment.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "framework/api/segment/shm_file.hpp"

namespace altiplano {
namespace {

constexpr const char* kKey = "comm/segment";

/// What the first of those that share a segment tells: "at <address>" or "error <text>".
std::string announcement(const Result<ShmFile>& segment) {
  return segment.is_ok() ? "at " + segment->address().to_string() : "error " + segment.status().message();
}

Result<ShmFile> create_segment(const SegmentShape& shape) {
  auto segment = ShmFile::create(shm_directory(), segment_bytes(shape));
  if (segment.is_ok()) initialize_segment(segment->memory().get(), shape);
  return segment;
}

/// The memory with the hold by which others find it.
std::shared_ptr<void> held(ShmFile file) {
  const auto hold = std::make_shared<ShmFile>(std::move(file));
  return {hold->memory().get(), [hold](void*) {}};
}

/// Of a rank that makes a segment, or nothing.
Result<std::string> announced_by(Rendezvous& rendezvous, int rank) {
  ALTIPLANO_ASSIGN(std::string text, rendezvous.get(RankId(rank), kKey));
  if (!text.starts_with("error ")) return text;
  return Status(StatusCode::kCancelled, fmt::format("rank {} failed first: {}", rank, text.substr(6)));
}

/// Arenas: files without a name, mapped by the peers.
class ArenaFiles final : public SharedMemorySource {
 public:
  Result<Made> make(int64_t bytes) override {
    ALTIPLANO_ASSIGN(ShmFile arena, ShmFile::create_anonymous(static_cast<size_t>(bytes)));
    const ShmAddress at = arena.address();
    void* memory = arena.memory().get();
    made_.emplace(memory, std::move(arena));
    return Made{memory, {at.device, at.inode, static_cast<uint64_t>(at.process), static_cast<uint64_t>(at.file)}};
  }
  void unmake(const Made& made, int64_t /*bytes*/) override { made_.erase(made.memory); }
  Result<void*> map(const MemoryAddress& address, int64_t bytes) override {
    const ShmAddress at{address[0], address[1], static_cast<int>(address[2]), static_cast<int>(address[3])};
    ALTIPLANO_ASSIGN(std::shared_ptr<void> memory, ShmFile::attach(at, static_cast<size_t>(bytes)));
    void* address_here = memory.get();
    mapped_.emplace(address_here, std::move(memory));
    return address_here;
  }
  void unmap(void* memory, int64_t /*bytes*/) override { mapped_.erase(memory); }

 private:
  std::map<void*, ShmFile> made_;
  std::map<void*, std::shared_ptr<void>> mapped_;
};

}  // namespace

Result<std::vector<std::string>> exchange_hosts(Rendezvous& rendezvous, std::chrono::milliseconds deadline) {
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.put("comm/host", rendezvous.host()));
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(deadline));
  std::vector<std::string> hosts;
  for (int rank = 0; rank < rendezvous.world_size(); ++rank) {
    ALTIPLANO_ASSIGN(std::string host, rendezvous.get(RankId(rank), "comm/host"));
    hosts.push_back(std::move(host));
  }
  return hosts;
}

Result<SegmentAttachment> attach_host_segment(Rendezvous& rendezvous, const CommOptions& options,
                                              const std::vector<int>& sharers) {
  const int rank = rendezvous.rank().value;
  SegmentAttachment attachment;
  attachment.scope = FutexScope::kShared;
  attachment.arenas = std::make_shared<ArenaFiles>();
  attachment.shape = segment_shape(static_cast<int>(sharers.size()), options.chunk_bytes);
  std::string text = "none";
  Status status;
  if (rank == sharers.front()) {
    auto made = create_segment(attachment.shape);
    text = announcement(made);
    status = made.status();
    if (made.is_ok()) attachment.memory = held(std::move(*made));
  }
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.put(kKey, text));
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(options.deadline));
  ALTIPLANO_RETURN_IF_ERROR(status);
  for (int peer = 0; peer < rendezvous.world_size(); ++peer)
    if (peer == sharers.front() || !std::binary_search(sharers.begin(), sharers.end(), peer))
      ALTIPLANO_RETURN_IF_ERROR(announced_by(rendezvous, peer).status());
  if (attachment.memory == nullptr) {
    ALTIPLANO_ASSIGN(text, announced_by(rendezvous, sharers.front()));
    ALTIPLANO_ASSIGN(const ShmAddress address, ShmAddress::parse(text.substr(text.find(' ') + 1)));
    ALTIPLANO_ASSIGN(attachment.memory, ShmFile::attach(address, segment_bytes(attachment.shape)));
  }
  const SegmentView view(attachment.memory.get());
  if (is_initialized(view, attachment.shape)) {
    const auto place = std::find(sharers.begin(), sharers.end(), rank) - sharers.begin();
    view.rank(static_cast<int>(place)).process.store(getpid());
  }
  return attachment;
}

}  // namespace altiplano
