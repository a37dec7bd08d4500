#pragma once
// Simplifying a ChoiceProblem without changing its minimum: choices that another is never worse than are shaved, edges
// that are sums of two parts move into the nodes, nodes left with one choice move into the constant, rows that cannot
// bind go.
#include <vector>

#include "framework/solve/choice_problem.hpp"

namespace altiplano {

struct SimplifiedProblem {
  ChoiceProblem problem;                    ///< over the nodes that still have a choice
  double constant = 0;                      ///< the original's cost minus this one's; infinite: nothing is allowed
  std::vector<int> node_of;                 ///< by original node: index in `problem`, -1: decided
  std::vector<std::vector<int>> choice_of;  ///< by original node: the choices left, in order

  /// Choices of the original from choices of `problem`.
  std::vector<int> restored(const std::vector<int>& choices) const;
};

/// Linear in edges x choices^2, times the few rounds until nothing changes. `problem` must be verified.
SimplifiedProblem simplify(const ChoiceProblem& problem);

}  // namespace altiplano
