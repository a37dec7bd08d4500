#include "plugins/comms/ucx/ucx_devices.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace altiplano::ucx {
namespace {

/// Names that container and virtual machine software gives to what does not leave the host.
bool is_of_this_host_only(const Interface& interface) {
  constexpr std::array<std::string_view, 8> kPrefixes = {"docker", "br-", "virbr",  "veth",
                                                         "vnet",   "cni", "podman", "lxc"};
  return interface.is_loopback ||
         std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return interface.name.starts_with(prefix); });
}

}  // namespace

std::vector<Interface> interfaces_of_this_host() {
  std::vector<Interface> interfaces;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return interfaces;
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    if (at->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family != AF_INET6) continue;
    if (std::ranges::none_of(interfaces, [&](const Interface& i) { return i.name == at->ifa_name; }))
      interfaces.push_back({at->ifa_name, (at->ifa_flags & IFF_LOOPBACK) != 0});
  }
  freeifaddrs(all);
  std::ranges::sort(interfaces, {}, &Interface::name);
  return interfaces;
}

std::vector<std::string> rdma_ports_of_this_host() {
  namespace fs = std::filesystem;
  std::vector<std::string> ports;
  std::error_code error;
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", error))
    for (const auto& port : fs::directory_iterator(device.path() / "ports", error))
      ports.push_back(device.path().filename().string() + ":" + port.path().filename().string());
  std::ranges::sort(ports);
  return ports;
}

std::vector<std::string> devices_between_hosts(const std::vector<Interface>& interfaces,
                                               const std::vector<std::string>& rdma_ports) {
  std::vector<std::string> devices = rdma_ports;
  for (const Interface& interface : interfaces)
    if (!is_of_this_host_only(interface)) devices.push_back(interface.name);
  return devices;
}

}  // namespace altiplano::ucx
