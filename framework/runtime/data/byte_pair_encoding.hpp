#pragma once
// Byte-pair encoding of one piece: neighbours are merged by lowest rank, leftmost first, until no rule applies.
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace altiplano {

struct MergeRule {
  int32_t rank = 0;    ///< position in the merges file; lower merges first
  int32_t merged = 0;  ///< id of the joined token
};

class MergeTable {
 public:
  /// False when the pair has a rule already.
  bool add(int32_t left, int32_t right, MergeRule rule) { return rules_.emplace(key(left, right), rule).second; }
  const MergeRule* find(int32_t left, int32_t right) const {
    auto found = rules_.find(key(left, right));
    return found == rules_.end() ? nullptr : &found->second;
  }

 private:
  static uint64_t key(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  }
  std::unordered_map<uint64_t, MergeRule> rules_;
};

/// Merges `symbols` in place. O(n log n): a piece may be a whole file without a space.
void merge_pairs(const MergeTable& table, std::vector<int32_t>& symbols);

}  // namespace altiplano
