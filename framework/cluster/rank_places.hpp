#pragma once
// Where the ranks of a job are in the tree of its network, as their addresses tell.
#include <string>
#include <vector>

namespace altiplano {

/// From the outermost switch inward, the host last: {"spine", "leaf1", "n3"}.
using NetworkAddress = std::vector<std::string>;

/// Level 0 are hosts, level 1 the switches above them, and so on. Ranks that share a group share those of all levels
/// above.
struct RankPlaces {
  std::vector<std::vector<int>> groups = {};  ///< by level and rank; numbered in the order of their first ranks
  /// The hosts' addresses were of unlike lengths, so that hosts are all that is known.
  bool is_cut = false;

  /// One address per rank.
  static RankPlaces from_addresses(const std::vector<NetworkAddress>& addresses);

  int num_ranks() const { return groups.empty() ? 0 : static_cast<int>(groups.front().size()); }
  int num_levels() const { return static_cast<int>(groups.size()); }
  int num_groups(int level) const;
  int group_of(int level, int rank) const { return groups[static_cast<size_t>(level)][static_cast<size_t>(rank)]; }
  /// The innermost level that has both in one group; num_levels() where none does.
  int meeting_level(int a, int b) const;
  /// "8 ranks on 4 hosts under 2 switches"
  std::string to_string() const;
};

}  // namespace altiplano
