#include "framework/cluster/rank_places.hpp"

#include <algorithm>
#include <map>

#include "framework/base/plural.hpp"

namespace altiplano {
namespace {

/// Numbers what is equal alike, in order of appearance.
std::vector<int> numbers_of(const std::vector<NetworkAddress>& addresses, size_t depth) {
  std::map<NetworkAddress, int> seen;
  std::vector<int> numbers;
  for (const NetworkAddress& address : addresses) {
    const NetworkAddress path(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(depth));
    numbers.push_back(seen.try_emplace(path, static_cast<int>(seen.size())).first->second);
  }
  return numbers;
}

}  // namespace

RankPlaces RankPlaces::from_addresses(const std::vector<NetworkAddress>& addresses) {
  RankPlaces places;
  if (addresses.empty()) return places;
  const size_t depth = addresses.front().size();
  places.is_cut = std::ranges::any_of(addresses, [&](const auto& address) { return address.size() != depth; });
  if (!places.is_cut) {
    for (size_t length = depth; length > 0; --length) places.groups.push_back(numbers_of(addresses, length));
    return places;
  }
  std::vector<NetworkAddress> hosts;
  for (const NetworkAddress& address : addresses) hosts.push_back({address.empty() ? std::string() : address.back()});
  places.groups.push_back(numbers_of(hosts, 1));
  return places;
}

int RankPlaces::num_groups(int level) const {
  return 1 + std::ranges::max(groups[static_cast<size_t>(level)]);
}

int RankPlaces::meeting_level(int a, int b) const {
  for (int level = 0; level < num_levels(); ++level)
    if (group_of(level, a) == group_of(level, b)) return level;
  return num_levels();
}

std::string RankPlaces::to_string() const {
  if (groups.empty()) return counted(0, "rank");
  std::string text = counted(num_ranks(), "rank") + " on " + counted(num_groups(0), "host");
  for (int level = 1; level < num_levels(); ++level) {
    const bool is_inner = level == 1;
    text += " under " +
            counted(num_groups(level), is_inner ? "switch" : "outer switch", is_inner ? "switches" : "outer switches");
    if (num_groups(level) == 1) break;  // what is above it joins nothing
  }
  return text;
}

}  // namespace altiplano
