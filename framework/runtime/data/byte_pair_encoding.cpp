#include "framework/runtime/data/byte_pair_encoding.hpp"

#include <queue>
#include <tuple>

namespace altiplano {
namespace {

/// Symbols as a doubly linked list over their first positions.
struct Node {
  int64_t previous, next;  ///< -1: none
};

struct Candidate {
  int32_t rank;
  int64_t position;     ///< of the left symbol
  int32_t left, right;  ///< ids when it was found: stale when they have changed
  int32_t merged;
  bool operator>(const Candidate& other) const {
    return std::tie(rank, position) > std::tie(other.rank, other.position);
  }
};

class Merger {
 public:
  Merger(const MergeTable& table, std::vector<int32_t>& symbols) : table_(table), ids_(symbols) {
    auto n = static_cast<int64_t>(ids_.size());
    for (int64_t i = 0; i < n; ++i) nodes_.push_back({i - 1, i + 1 < n ? i + 1 : -1});
    for (int64_t i = 0; i + 1 < n; ++i) consider(i);
  }

  void run() {
    while (!queue_.empty()) {
      Candidate best = queue_.top();
      queue_.pop();
      if (is_current(best)) join(best);
    }
    compact();
  }

 private:
  static constexpr int32_t kGone = -1;
  int32_t& id(int64_t position) { return ids_[static_cast<size_t>(position)]; }
  Node& node(int64_t position) { return nodes_[static_cast<size_t>(position)]; }

  void consider(int64_t position) {
    if (position < 0 || node(position).next < 0) return;
    int32_t left = id(position), right = id(node(position).next);
    if (const MergeRule* rule = table_.find(left, right))
      queue_.push({rule->rank, position, left, right, rule->merged});
  }

  bool is_current(const Candidate& c) {
    int64_t next = node(c.position).next;
    return id(c.position) == c.left && next >= 0 && id(next) == c.right;
  }

  void join(const Candidate& c) {
    int64_t gone = node(c.position).next, after = node(gone).next;
    id(c.position) = c.merged;
    id(gone) = kGone;
    node(c.position).next = after;
    if (after >= 0) node(after).previous = c.position;
    consider(node(c.position).previous);
    consider(c.position);
  }

  void compact() { std::erase(ids_, kGone); }

  const MergeTable& table_;
  std::vector<int32_t>& ids_;
  std::vector<Node> nodes_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

}  // namespace

void merge_pairs(const MergeTable& table, std::vector<int32_t>& symbols) {
  if (symbols.size() > 1) Merger(table, symbols).run();
}

}  // namespace altiplano
