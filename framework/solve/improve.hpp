#pragma once
// Local search over the choices of single nodes: makes choices keep their rows, and cheaper. No bound, no promise: what
// the exact search starts from. Deterministic.
#include <optional>
#include <vector>

#include "framework/solve/choice_problem.hpp"

namespace altiplano {

class LocalSearch {
 public:
  explicit LocalSearch(const ChoiceProblem& problem);  ///< outlives this

  /// Changes single choices, least cost per unit of excess first, until every row is kept; nothing when that gets
  /// stuck.
  std::optional<std::vector<int>> repaired(std::vector<int> choices) const;
  /// Changes single choices that cost less and break no row, until none is left.
  std::vector<int> improved(std::vector<int> choices) const;

 private:
  struct Neighbour {
    int edge;
    bool is_a;  ///< the node is the edge's `a`
  };
  struct RowTerm {
    int row, term;
  };
  double cost_at(int node, int choice, const std::vector<int>& choices) const;
  double violation_change(int node, int from, int to, const std::vector<double>& excess) const;
  bool keeps_rows(int node, int from, int to, const std::vector<double>& excess) const;
  void apply(int node, int choice, std::vector<int>& choices, std::vector<double>& excess) const;

  const ChoiceProblem& problem_;
  std::vector<std::vector<Neighbour>> edges_of_;
  std::vector<std::vector<RowTerm>> rows_of_;
};

}  // namespace altiplano
