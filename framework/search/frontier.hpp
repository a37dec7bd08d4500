#pragma once
// Frontiers of time and memory, and their (min,+) algebra: what one layer may take by the specs at its boundaries, what
// a chain of layers takes, and n equal layers by squaring, so that depth costs its logarithm. Pure functions over
// numbers.
#include <cstddef>
#include <vector>

namespace altiplano {

/// One way to do something: seconds and bytes, and what it is made of: `ways[i]` of how many parts were done in way i.
struct FrontierPoint {
  double seconds = 0, bytes = 0;
  std::vector<int> ways;
};

/// Ascending in seconds, descending in bytes; no point is as slow and as large as another.
using Frontier = std::vector<FrontierPoint>;

/// Of any points those that no other beats in both; of equals the first.
Frontier pareto(std::vector<FrontierPoint> points);

/// One thing after the other: seconds and bytes add up. Empty where one of them is.
Frontier operator+(const Frontier& a, const Frontier& b);
/// One thing or the other.
Frontier either(const Frontier& a, const Frontier& b);

/// `parts` that may each be done in any of these points' ways. O(log parts) sums; exact.
Frontier times(const Frontier& of_one, int parts);

/// By spec before and spec behind: [in][out]. The (min,+) product goes through all specs between.
using FrontierMatrix = std::vector<std::vector<Frontier>>;
FrontierMatrix operator*(const FrontierMatrix& a, const FrontierMatrix& b);
/// A chain of n equal layers; n = 0: nothing is done, specs stay as they are.
FrontierMatrix power(const FrontierMatrix& of_one, int n);

/// At most `most` points: the ends stay, of the others those whose bytes differ most. For searches that multiply
/// frontiers; what is left out is slower or larger than it must be by no more than a neighbour.
Frontier thinned(const Frontier& frontier, size_t most);

/// The fastest point within these bytes; null when there is none.
const FrontierPoint* fastest_within(const Frontier& frontier, double bytes);

}  // namespace altiplano
