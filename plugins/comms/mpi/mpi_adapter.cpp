// comm/mpi: the door to the plugin.
#include "framework/api/network/network_communicator.hpp"
#include "framework/api/register.hpp"
#include "plugins/comms/mpi/mpi_transport.hpp"

namespace altiplano::mpi {
namespace {

constexpr uint64_t kCapabilities = kCommNeedsHostProgress | kCommDeterministic | kCommBetweenHosts;

class MpiBackend final : public CommBackend {
 public:
  uint64_t capabilities() const noexcept override { return kCapabilities; }

  Result<std::unique_ptr<Communicator>> connect(Rendezvous& rendezvous, const CommOptions& options) noexcept override
      try {
    ALTIPLANO_ASSIGN(Connection connection, connect_ranks(rendezvous, options.deadline));
    std::vector<std::string> hosts = std::move(connection.hosts);
    return network::open_network_communicator(rendezvous, options, std::move(hosts),
                                              std::make_unique<MpiTransport>(std::move(connection)));
  } catch (const std::exception& e) {
    return runtime_failure("comm/mpi: {}", e.what());
  }
};

}  // namespace
}  // namespace altiplano::mpi

ALTIPLANO_REGISTER_PLUGIN(altiplano::CommBackend, altiplano::mpi::MpiBackend, "comm/mpi", ALTIPLANO_PLUGIN_VERSION,
                          altiplano::mpi::kCapabilities, "ranks on several hosts, over MPI")
