#pragma once
// Which network devices UCX may use between hosts.
#include <string>
#include <vector>

namespace altiplano::ucx {

struct Interface {
  std::string name;
  bool is_loopback = false;
};

/// Those of this host that are up and have an address, by name.
std::vector<Interface> interfaces_of_this_host();
/// Ports of InfiniBand and RoCE adapters: "mlx5_0:1".
std::vector<std::string> rdma_ports_of_this_host();

/// Devices that lead to other hosts: neither the loopback nor bridges of containers and virtual machines. Empty: none
/// is known, and UCX may take what it finds.
std::vector<std::string> devices_between_hosts(const std::vector<Interface>& interfaces,
                                               const std::vector<std::string>& rdma_ports);

}  // namespace altiplano::ucx
