#pragma once
// The same problem as an integer program for COIN-OR CBC, the second exact back end: one binary per choice, one
// continuous variable per pair of choices of an edge, tied to both nodes by equalities (the local polytope). Slower
// than elimination where that works, indifferent to width, and the oracle of the tests. The only home of CBC's headers.
#include "framework/solve/branch_and_bound.hpp"

namespace altiplano {

/// Variables that the program would have.
int64_t cbc_variables(const ChoiceProblem& problem);

/// Least cost within the rows, as least_cost of branch_and_bound.hpp; `start` warm-starts it. One thread; deterministic
/// unless the deadline stops it.
SearchOutcome least_cost_by_cbc(const ChoiceProblem& problem, const SearchLimits& limits,
                                const std::vector<int>& start = {});

}  // namespace altiplano
