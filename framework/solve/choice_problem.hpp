#pragma once
// solve/ (L1): an exact solver for choices that influence each other. Pure functions over numbers: it knows of no
// graph, plan or cluster and may include base/ only.
//
// ChoiceProblem: every node takes exactly one of its choices; minimise the sum of what the choices cost and of what
// pairs of choices cost along edges, such that every row's uses stay within its limit. The form in which Alpa (Zheng et
// al., OSDI 2022, section 4.2) states intra-operator planning, with rows for memory.
#include <limits>
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

/// The cost of what must not be chosen.
inline constexpr double kForbidden = std::numeric_limits<double>::infinity();

/// Nodes, choices and edges are numbered by int; where they index.
inline size_t to_index(int number) {
  return static_cast<size_t>(number);
}

/// What a pair of choices costs: costs[choice of a * choices of b + choice of b].
struct ChoiceEdge {
  int a = 0, b = 0;
  std::vector<double> costs;
};

/// What each choice of a node uses of a row's limit.
struct LimitTerm {
  int node = 0;
  std::vector<double> use;
};

/// The sum of the terms' uses must be at most `limit`.
struct LimitRow {
  double limit = 0;
  std::vector<LimitTerm> terms;
};

struct ChoiceProblem {
  std::vector<std::vector<double>> nodes;  ///< costs of every node's choices, any sign; at least one choice each
  std::vector<ChoiceEdge> edges;           ///< any number between two nodes: they add up
  std::vector<LimitRow> rows;

  /// Refuses nodes without choices, indices and sizes that do not fit, NaN, minus infinity, infinite uses and limits.
  Status verify() const;
  int num_choices(int node) const { return static_cast<int>(nodes[static_cast<size_t>(node)].size()); }
};

/// One choice per node; of a verified problem.
double cost_of(const ChoiceProblem& problem, const std::vector<int>& choices);
/// Use minus limit of every row: positive where the choices break it.
std::vector<double> excess_of(const ChoiceProblem& problem, const std::vector<int>& choices);
/// The largest excess; minus infinity without rows.
double largest_excess(const ChoiceProblem& problem, const std::vector<int>& choices);
/// Whether no row is broken by more than rounding explains.
bool is_within_limits(const ChoiceProblem& problem, const std::vector<int>& choices);

}  // namespace altiplano
