#pragma once
// The front door of solve/: simplify, relax and branch (branch_and_bound.hpp), and where that ends with a gap, CBC.
// Never aborts: what time does not allow to prove comes back as the best found and a bound. Deterministic as long as
// the clock ends nothing.
#include <cstdint>
#include <vector>

#include "framework/base/units.hpp"
#include "framework/solve/choice_problem.hpp"

namespace altiplano {

enum class SolveBackEnd : uint8_t {
  kAuto,  ///< own search first, CBC for what it leaves open on problems of moderate size
  kOwn,
  kCbc,  ///< CBC alone, for comparisons
};

struct SolveOptions {
  double gap = 1e-3;  ///< relative distance between cost and bound that counts as solved; 0: to rounding
  Seconds time{10};   ///< wall clock
  int64_t most_branches = 20000;
  int64_t most_table_entries = int64_t{1} << 22;  ///< of one table of the elimination; wider graphs get weaker bounds
  SolveBackEnd back_end = SolveBackEnd::kAuto;
  std::vector<int> start;  ///< choices to begin with (those of the last solve, when only costs changed); empty: none
};

enum class SolveKind : uint8_t {
  kOptimal,       ///< nothing is better by more than the gap asked for
  kFeasible,      ///< the best found in time; `bound` says how much better others may be
  kInfeasible,    ///< no choices keep the rows: `excess` says what lacks
  kForbiddenAll,  ///< no choices have a finite cost, whatever the rows
  kUnknown,       ///< time ended before any choices within the rows were found
};
const char* to_string(SolveKind kind);

struct Solution {
  SolveKind kind = SolveKind::kUnknown;
  std::vector<int>
      choices;  ///< one per node; kInfeasible, kUnknown: those that come nearest to the limits, if any are known
  double cost = kForbidden;    ///< of `choices`
  double bound = -kForbidden;  ///< no choices within the rows cost less
  /// kInfeasible: all rows would be kept with limits larger by this, and by no less than `excess_bound`.
  double excess = 0, excess_bound = 0;
  int width = 0;  ///< of the elimination order found
  int64_t num_branches = 0;
  /// (cost - bound) / |cost|; infinite without choices.
  double gap() const;
};

/// `problem` must be verified.
Solution solve(const ChoiceProblem& problem, const SolveOptions& options = {});

}  // namespace altiplano
