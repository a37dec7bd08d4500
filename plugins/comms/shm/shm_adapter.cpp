// comm/shm: the segment is a file of shared memory that rank 0 makes.
#include <numeric>

#include "framework/api/register.hpp"
#include "framework/api/segment/host_segment.hpp"

namespace altiplano {
namespace {

constexpr uint64_t kCapabilities = kCommNeedsHostProgress | kCommDeterministic | kCommBetweenProcesses | kCommNoticesDeath;

class ShmBackend final : public CommBackend {
 public:
  uint64_t capabilities() const noexcept override { return kCapabilities; }

  Result<std::unique_ptr<Communicator>> connect(Rendezvous& rendezvous, const CommOptions& options) noexcept override
      try {
    std::vector<int> all(static_cast<size_t>(rendezvous.world_size()));
    std::iota(all.begin(), all.end(), 0);
    ALTIPLANO_ASSIGN(SegmentAttachment attachment, attach_host_segment(rendezvous, options, all));
    return open_segment_communicator(rendezvous, options, std::move(attachment));
  } catch (const std::exception& e) {
    return runtime_failure("comm/shm: {}", e.what());
  }
};

}  // namespace
}  // namespace altiplano

ALTIPLANO_REGISTER_PLUGIN(altiplano::CommBackend, altiplano::ShmBackend, "comm/shm", ALTIPLANO_PLUGIN_VERSION,
                          altiplano::kCapabilities, "processes of one host over shared memory")
