#include "framework/program/arena.hpp"

#include <algorithm>
#include <numeric>

namespace altiplano {

int64_t assign_offsets(std::vector<LiveRange>& ranges) {
  std::vector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ranges[a].bytes > ranges[b].bytes; });
  std::vector<size_t> placed;  // kept sorted by offset
  int64_t total = 0;
  for (size_t index : order) {
    LiveRange& range = ranges[index];
    if (range.bytes == 0) continue;
    int64_t at = 0;
    for (size_t other : placed) {
      const LiveRange& p = ranges[other];
      if (p.last < range.first || p.first > range.last) continue;
      if (p.offset - at >= align_up(range.bytes)) break;
      at = std::max(at, p.offset + align_up(p.bytes));
    }
    range.offset = at;
    auto position = std::upper_bound(placed.begin(), placed.end(), at,
                                     [&](int64_t offset, size_t p) { return offset < ranges[p].offset; });
    placed.insert(position, index);
    total = std::max(total, at + align_up(range.bytes));
  }
  return total;
}

}  // namespace altiplano
