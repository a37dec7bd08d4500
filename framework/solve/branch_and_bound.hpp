#pragma once
// Branch and bound over a ChoiceProblem: the relaxation's bounds (relaxation.hpp), best bound first, choices fixed by
// their reduced costs, branches where the cheapest choices that break the rows differ most from those that keep them.
// Deterministic as long as it is not stopped by the clock.
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/solve/relaxation.hpp"

namespace altiplano {

struct SearchLimits {
  double gap = 1e-3;  ///< relative distance of value and bound that ends the search
  int64_t most_branches = 20000;
  int64_t most_table_entries = Elimination::kMostEntries;
  Relaxation::Clock::time_point deadline;
};

struct SearchOutcome {
  std::vector<int> choices;    ///< empty: none found
  double value = kForbidden;   ///< their cost (largest excess)
  double bound = -kForbidden;  ///< nothing is below it
  int64_t num_branches = 0;
  int width = 0;  ///< of the elimination order
};

/// The least cost within the rows. value = bound = infinity: nothing is within them. `start`: choices to beat, or none.
SearchOutcome least_cost(const ChoiceProblem& problem, const SearchLimits& limits, const std::vector<int>& start = {});
/// The smallest possible largest excess over the rows, of which there is at least one: how much all limits lack
/// together, or, when not positive, can spare. value = bound = infinity: what is forbidden leaves nothing.
SearchOutcome least_excess(const ChoiceProblem& problem, const SearchLimits& limits);

}  // namespace altiplano
