#pragma once
// Work that takes now longer, now shorter: neighbours, clocks, the operating system.
#include <cstdint>

#include "framework/base/ids.hpp"

namespace altiplano {

/// The work of each action of each rank takes a log-normal factor of mean 1 as long, drawn anew for each: a pure
/// function of seed, rank and the action's place in the rank's step. What is on the wire keeps its time.
struct Jitter {
  double deviation = 0;  ///< of the factor's logarithm; 0: none
  uint64_t seed = 0;

  /// Of a program that stands for `num_alike` ranks from `rank` on: the largest factor of all of them, as if they
  /// waited for each other after each action.
  double factor(RankId rank, int num_alike, size_t action) const;
};

}  // namespace altiplano
