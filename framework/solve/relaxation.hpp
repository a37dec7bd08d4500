#pragma once
// Relaxation: a ChoiceProblem whose rows are paid for instead of kept (Lagrangian relaxation, Fisher, Management
// Science 1981). For any non-negative price per row, the minimum of costs + prices x excess is a lower bound of what
// the rows allow; the best prices are found along one line exactly (Handler, Zang, Networks 1980) and for several rows
// by subgradients before that.
#include <chrono>
#include <optional>
#include <vector>

#include "framework/solve/elimination.hpp"

namespace altiplano {

/// Which choices are still allowed: [node][choice].
using Allowed = std::vector<std::vector<uint8_t>>;

/// Choices that some prices led to.
struct Sample {
  std::vector<int> choices;
  double cost = kForbidden;    ///< true cost, without prices
  std::vector<double> excess;  ///< per row
  bool is_within = false;      ///< no row is broken
};

class Relaxation {
 public:
  using Clock = std::chrono::steady_clock;

  /// `problem` outlives this; its rows should be of like scale.
  Relaxation(const ChoiceProblem& problem, Clock::time_point deadline, int64_t most_table_entries);

  struct Answer {
    double bound = -kForbidden;  ///< infinite: nothing allowed is within the rows
    std::vector<double> prices;  ///< that gave the bound, one per row
    std::optional<Sample> breaks,
        within;                  ///< at the best prices: the cheapest that breaks rows, the cheapest that does not
    std::vector<Sample> others;  ///< further choices within the rows
  };
  /// The best bound of what is allowed, starting at `prices`. `target`: a cost known to be reached; above it the search
  /// for a better bound ends. `rounds`: subgradient steps for problems of several rows.
  Answer best_bound(const Allowed& allowed, const std::vector<double>& prices, double target, int rounds);

  /// The smallest possible largest excess: a lower bound, and the best choices met. Exact for one row.
  struct Excess {
    double bound = -kForbidden, value = kForbidden;
    std::vector<double> weights;
    std::vector<int> choices;
  };
  Excess least_excess(const Allowed& allowed, const std::vector<double>& weights, int rounds);

  /// Bounds with each choice fixed, at the prices of a bound of best_bound.
  Elimination::NodeCosts marginals(const Allowed& allowed, const std::vector<double>& prices);
  /// The same for the weights of least_excess.
  Elimination::NodeCosts excess_marginals(const Allowed& allowed, const std::vector<double>& weights);

  const std::vector<int>& split_nodes() const { return costs_.split_nodes(); }
  int width() const { return costs_.width(); }
  bool is_late() const { return Clock::now() >= deadline_; }

 private:
  struct Point {
    double bound;
    Sample sample;
  };
  const Elimination::NodeCosts& priced(const Allowed& allowed, const std::vector<double>& prices, double cost_weight);
  double limits_paid(const std::vector<double>& prices) const;
  Elimination::NodeCosts marginals_of(Elimination& elimination, const Elimination::NodeCosts& costs,
                                      const std::vector<double>& prices) const;
  Point evaluate(const Allowed& allowed, const std::vector<double>& prices);
  Point evaluate_uses(const Allowed& allowed, const std::vector<double>& weights);
  Sample sample_of(std::vector<int> choices) const;
  void ascend(const Allowed& allowed, std::vector<double> prices, double target, int rounds, Answer& answer);
  void search_line(const Allowed& allowed, const std::vector<double>& direction, const Point& start, Answer& answer);

  const ChoiceProblem& problem_;
  ChoiceProblem uses_problem_;  ///< the same with costs of 0 where anything is allowed
  Elimination costs_, uses_;
  Elimination::NodeCosts priced_;  ///< of the last evaluation: its memory is used again
  Clock::time_point deadline_;
};

}  // namespace altiplano
