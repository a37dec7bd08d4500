// comm/ucx: the door to the plugin.
#include <cstdlib>
#include <set>

#include "framework/api/network/network_communicator.hpp"
#include "framework/api/register.hpp"
#include "framework/api/segment/host_segment.hpp"
#include "framework/base/text.hpp"
#include "plugins/comms/ucx/ucx_devices.hpp"
#include "plugins/comms/ucx/ucx_transport.hpp"

namespace altiplano::ucx {
namespace {

constexpr uint64_t kCapabilities =
    kCommNeedsHostProgress | kCommDeterministic | kCommBetweenProcesses | kCommBetweenHosts | kCommNoticesDeath;

std::string about(const std::vector<std::string>& devices) {
  const char* asked = std::getenv("UCX_NET_DEVICES");
  const std::string text = asked == nullptr ? join(devices, ", ") : asked;
  return text.empty() ? "UCX" : fmt::format("UCX ({})", text);
}

/// What UCX_NET_DEVICES says stands. Ranks of one host may go by the loopback.
std::vector<std::string> devices_for(bool is_one_host) {
  if (is_one_host || std::getenv("UCX_NET_DEVICES") != nullptr) return {};
  return devices_between_hosts(interfaces_of_this_host(), rdma_ports_of_this_host());
}

class UcxBackend final : public CommBackend {
 public:
  uint64_t capabilities() const noexcept override { return kCapabilities; }

  Result<std::unique_ptr<Communicator>> connect(Rendezvous& rendezvous, const CommOptions& options) noexcept override
      try {
    ALTIPLANO_ASSIGN(std::vector<std::string> hosts, exchange_hosts(rendezvous, options.deadline));
    const bool is_one_host = std::set(hosts.begin(), hosts.end()).size() == 1;
    const std::vector<std::string> devices = devices_for(is_one_host);
    ALTIPLANO_ASSIGN(auto worker, Worker::open(devices));
    ALTIPLANO_ASSIGN(const std::string address, worker->address());
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.put("comm/ucx", address));
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(options.deadline));
    std::vector<std::string> addresses, names;
    for (int rank = 0; rank < rendezvous.world_size(); ++rank) {
      ALTIPLANO_ASSIGN(std::string of_rank, rendezvous.get(RankId(rank), "comm/ucx"));
      addresses.push_back(std::move(of_rank));
      names.push_back(fmt::format("rank {} ({})", rank, hosts[static_cast<size_t>(rank)]));
    }
    auto transport = std::make_unique<UcxTransport>(std::move(worker), rendezvous.rank().value, std::move(addresses),
                                                    std::move(names), about(devices));
    ALTIPLANO_RETURN_IF_ERROR(transport->connect());
    return network::open_network_communicator(rendezvous, options, std::move(hosts), std::move(transport));
  } catch (const std::exception& e) {
    return runtime_failure("comm/ucx: {}", e.what());
  }
};

}  // namespace
}  // namespace altiplano::ucx

ALTIPLANO_REGISTER_PLUGIN(altiplano::CommBackend, altiplano::ucx::UcxBackend, "comm/ucx", ALTIPLANO_PLUGIN_VERSION,
                          altiplano::ucx::kCapabilities, "ranks on several hosts, over UCX")
