#pragma once
// Box: an axis-aligned part of a named global tensor: origin and extents per dim. Region: what a rank holds of it.
//
// The region-transfer engine (plan_transfer) serves cross-mesh pipeline transfer, tied copies, checkpoint restore under
// another plan, and later live rebalancing: source boxes -> destination boxes, copied or summed in a fixed order
// (design invariant 5).
#include <optional>
#include <string>
#include <vector>

#include "framework/graph/dtype.hpp"

namespace altiplano {

struct Box {
  std::vector<int64_t> origin;
  std::vector<int64_t> extents;

  static Box whole(const Shape& shape) { return {std::vector<int64_t>(shape.size(), 0), shape}; }
  int64_t num_elements() const;
  bool is_empty() const { return num_elements() == 0; }
  bool contains(const Box& other) const;
  std::string to_string() const;  ///< "[0:12, 24:48]"
  auto operator<=>(const Box&) const = default;
};

/// Nothing when they do not overlap. Scalars (no dims) always overlap.
std::optional<Box> intersect(const Box& a, const Box& b);
/// `a` without `b` as disjoint boxes.
std::vector<Box> subtract(const Box& a, const Box& b);

/// A box held by someone (a rank, a shard file): index into the caller's list of holders.
struct HeldBox {
  int holder = 0;
  Box box;
};

struct BoxTransfer {
  int source = 0;       ///< holder index of the source
  int destination = 0;  ///< holder index of the destination
  Box box;              ///< global coordinates
  auto operator<=>(const BoxTransfer&) const = default;
};

/// Copies: for each destination box, pieces from sources that cover it, each element once. Among sources that hold the
/// same element the one whose holder equals `preferred[destination]` (if given) wins, then destinations spread
/// round-robin over replicas. Sorted by (destination, source, box). `uncovered` receives the boxes no source holds
/// (nullptr: asserts there are none).
std::vector<BoxTransfer> plan_transfer(const std::vector<HeldBox>& sources, const std::vector<HeldBox>& destinations,
                                       std::vector<HeldBox>* uncovered = nullptr);

/// Strided copy between two local tensors that hold boxes of the same global tensor: the part `box` of source to
/// destination.
struct BoxCopy {
  Box source;       ///< the box the source buffer holds (contiguous, row-major)
  Box destination;  ///< the box the destination buffer holds
  Box part;         ///< what is copied, inside both
};

}  // namespace altiplano
