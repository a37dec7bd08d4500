#include "@name@_allocation.hpp"

#include <algorithm>
#include <charconv>

#include "framework/base/text.hpp"

namespace @name@_plugin {

using namespace altiplano;

static std::string variable(const Environment& environment, const std::string& name) {
  const auto at = environment.find(name);
  return at == environment.end() ? "" : at->second;
}

bool is_present(const Environment& environment) {
  const std::string id = variable(environment, "@NAME@_JOB_ID");
  return !id.empty() && std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c) || c == '-'; });
}

Result<Allocation> read_allocation(const Environment& environment, int ranks) {
  if (ranks < 1) return invalid_argument("scheduler @name@: {} ranks; nearest legal value: 1", ranks);
  if (!is_present(environment))
    return invalid_argument("scheduler @name@: no @NAME@_JOB_ID of letters, digits and '-'; start under @name@");
  Allocation allocation;
  allocation.job_id = variable(environment, "@NAME@_JOB_ID");
  for (const std::string& host : split(variable(environment, "@NAME@_HOSTS"), ','))
    if (!trim(host).empty()) allocation.hosts.push_back(trim(host));
  if (allocation.hosts.empty()) return invalid_argument("scheduler @name@: @NAME@_HOSTS names no host");
  const int hosts = static_cast<int>(allocation.hosts.size());
  for (int host = 0; host < hosts; ++host)
    allocation.ranks_per_host.push_back(ranks / hosts + (host < ranks % hosts ? 1 : 0));
  const std::string cpus = variable(environment, "@NAME@_CPUS_PER_RANK");
  std::from_chars(cpus.data(), cpus.data() + cpus.size(), allocation.cpus_per_rank);
  allocation.cpus_per_rank = std::max(1, allocation.cpus_per_rank);
  return allocation;
}

}  // namespace @name@_plugin
