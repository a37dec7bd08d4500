#include "framework/solve/solve.hpp"

#include <algorithm>
#include <cmath>

#include "framework/solve/branch_and_bound.hpp"
#include "framework/solve/cbc.hpp"
#include "framework/solve/simplify.hpp"

namespace altiplano {

namespace {

/// Beyond this CBC only spends the time.
constexpr int64_t kMostCbcVariables = 120000;

/// Rows in units of the largest limit or use, so that prices and tolerances have one scale.
double scale_rows(ChoiceProblem& problem) {
  double size = 0;
  for (const LimitRow& row : problem.rows) {
    size = std::max(size, std::abs(row.limit));
    for (const LimitTerm& term : row.terms)
      for (double use : term.use) size = std::max(size, std::abs(use));
  }
  if (size == 0) return 1;
  for (LimitRow& row : problem.rows) {
    row.limit /= size;
    for (LimitTerm& term : row.terms)
      for (double& use : term.use) use /= size;
  }
  return size;
}

/// A start in terms of the simplified problem: a shaved choice is taken over by the first that is left.
std::vector<int> simplified_start(const SimplifiedProblem& simplified, const std::vector<int>& start) {
  std::vector<int> out(simplified.problem.nodes.size(), 0);
  for (size_t v = 0; v < start.size() && v < simplified.node_of.size(); ++v) {
    if (simplified.node_of[v] < 0) continue;
    const auto& left = simplified.choice_of[v];
    const auto place = std::find(left.begin(), left.end(), start[v]);
    if (place != left.end()) out[static_cast<size_t>(simplified.node_of[v])] = static_cast<int>(place - left.begin());
  }
  return out;
}

class Solver {
 public:
  Solver(const ChoiceProblem& problem, const SolveOptions& options)
      : original_(problem), options_(options), simplified_(simplify(problem)) {
    row_scale_ = scale_rows(simplified_.problem);
    limits_.gap = options.gap;
    limits_.most_branches = options.most_branches;
    limits_.most_table_entries = options.most_table_entries;
    limits_.deadline = Relaxation::Clock::now() + std::chrono::duration_cast<Relaxation::Clock::duration>(
                                                      std::chrono::duration<double>(options.time.value));
  }

  Solution run() {
    if (simplified_.constant == kForbidden) {
      solution_.kind = SolveKind::kForbiddenAll;
      solution_.bound = kForbidden;
      return solution_;
    }
    SearchOutcome outcome = search();
    solution_.num_branches = outcome.num_branches;
    solution_.width = outcome.width;
    if (outcome.value != kForbidden) return answer(outcome);
    return explain(outcome);
  }

 private:
  SearchOutcome search() {
    std::vector<int> start;
    if (!options_.start.empty()) start = simplified_start(simplified_, options_.start);
    if (!start.empty() &&
        (!is_within_limits(simplified_.problem, start) || cost_of(simplified_.problem, start) == kForbidden))
      start.clear();
    if (options_.back_end == SolveBackEnd::kCbc) return least_cost_by_cbc(simplified_.problem, limits_, start);
    SearchOutcome own = least_cost(simplified_.problem, limits_, start);
    if (options_.back_end == SolveBackEnd::kOwn || is_closed(own) ||
        cbc_variables(simplified_.problem) > kMostCbcVariables)
      return own;
    SearchOutcome cbc = least_cost_by_cbc(simplified_.problem, limits_, own.choices);
    cbc.bound = std::max(cbc.bound, own.bound);
    cbc.num_branches = own.num_branches;
    cbc.width = own.width;
    return cbc;
  }

  /// A little more than the search prunes by: sums of costs are rounded by some 1e-16 of themselves.
  double allowed_gap() const { return std::max(options_.gap + 1e-14, 1e-9); }

  bool is_closed(const SearchOutcome& outcome) const {
    if (outcome.value == kForbidden) return outcome.bound == kForbidden;
    return outcome.value - outcome.bound <= allowed_gap() * std::abs(outcome.value);
  }

  Solution answer(const SearchOutcome& outcome) {
    solution_.choices = simplified_.restored(outcome.choices);
    solution_.cost = cost_of(original_, solution_.choices);
    solution_.bound = std::min(outcome.bound + simplified_.constant, solution_.cost);
    solution_.kind =
        is_closed(outcome) || solution_.gap() <= allowed_gap() ? SolveKind::kOptimal : SolveKind::kFeasible;
    return solution_;
  }

  /// No choices within the rows were found: what lacks, or whether it is the clock that lacks.
  Solution explain(const SearchOutcome& outcome) {
    if (simplified_.problem.rows.empty()) {
      solution_.kind = outcome.bound == kForbidden ? SolveKind::kForbiddenAll : SolveKind::kUnknown;
      solution_.bound = outcome.bound;
      return solution_;
    }
    SearchLimits limits = limits_;
    limits.gap = std::max(limits.gap, 1e-6);
    limits.most_branches = std::max<int64_t>(1, options_.most_branches / 10);
    const SearchOutcome least = least_excess(simplified_.problem, limits);
    if (least.value != kForbidden) {
      solution_.choices = simplified_.restored(least.choices);
      solution_.cost = cost_of(original_, solution_.choices);
    }
    solution_.bound = outcome.bound;
    solution_.excess = least.value == kForbidden ? kForbidden : largest_excess(original_, solution_.choices);
    solution_.excess_bound = least.bound * row_scale_;
    if (least.value == kForbidden && least.bound == kForbidden)
      solution_.kind = SolveKind::kForbiddenAll;
    else if (outcome.bound == kForbidden || least.bound > 1e-9)
      solution_.kind = SolveKind::kInfeasible;
    else if (least.value <= 0 && is_within_limits(original_, solution_.choices))
      solution_.kind = SolveKind::kFeasible;
    return solution_;
  }

  const ChoiceProblem& original_;
  const SolveOptions& options_;
  SimplifiedProblem simplified_;
  double row_scale_ = 1;
  SearchLimits limits_;
  Solution solution_;
};

}  // namespace

const char* to_string(SolveKind kind) {
  switch (kind) {
    case SolveKind::kOptimal:
      return "optimal";
    case SolveKind::kFeasible:
      return "feasible";
    case SolveKind::kInfeasible:
      return "infeasible";
    case SolveKind::kForbiddenAll:
      return "all forbidden";
    case SolveKind::kUnknown:
      break;
  }
  return "unknown";
}

double Solution::gap() const {
  if (choices.empty() || cost == kForbidden) return kForbidden;
  if (cost == bound) return 0;
  return (cost - bound) / std::max(std::abs(cost), 1e-300);
}

Solution solve(const ChoiceProblem& problem, const SolveOptions& options) {
  return Solver(problem, options).run();
}

}  // namespace altiplano
