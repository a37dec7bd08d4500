#include "framework/solve/improve.hpp"

#include <algorithm>
#include <cmath>

namespace altiplano {

LocalSearch::LocalSearch(const ChoiceProblem& problem)
    : problem_(problem), edges_of_(problem.nodes.size()), rows_of_(problem.nodes.size()) {
  for (size_t e = 0; e < problem.edges.size(); ++e) {
    edges_of_[to_index(problem.edges[e].a)].push_back({static_cast<int>(e), true});
    edges_of_[to_index(problem.edges[e].b)].push_back({static_cast<int>(e), false});
  }
  for (size_t r = 0; r < problem.rows.size(); ++r)
    for (size_t t = 0; t < problem.rows[r].terms.size(); ++t)
      rows_of_[to_index(problem.rows[r].terms[t].node)].push_back({static_cast<int>(r), static_cast<int>(t)});
}

/// What depends on the node's choice.
double LocalSearch::cost_at(int node, int choice, const std::vector<int>& choices) const {
  double cost = problem_.nodes[to_index(node)][to_index(choice)];
  for (const Neighbour& n : edges_of_[to_index(node)]) {
    const ChoiceEdge& edge = problem_.edges[to_index(n.edge)];
    const int a = n.is_a ? choice : choices[to_index(edge.a)], b = n.is_a ? choices[to_index(edge.b)] : choice;
    cost += edge.costs[to_index(a) * problem_.nodes[to_index(edge.b)].size() + to_index(b)];
  }
  return cost;
}

double LocalSearch::violation_change(int node, int from, int to, const std::vector<double>& excess) const {
  double change = 0;
  for (const RowTerm& t : rows_of_[to_index(node)]) {
    const std::vector<double>& use = problem_.rows[to_index(t.row)].terms[to_index(t.term)].use;
    const double before = excess[to_index(t.row)];
    change += std::max(0.0, before + use[to_index(to)] - use[to_index(from)]) - std::max(0.0, before);
  }
  return change;
}

bool LocalSearch::keeps_rows(int node, int from, int to, const std::vector<double>& excess) const {
  for (const RowTerm& t : rows_of_[to_index(node)]) {
    const std::vector<double>& use = problem_.rows[to_index(t.row)].terms[to_index(t.term)].use;
    const double more = use[to_index(to)] - use[to_index(from)];
    if (more > 0 && excess[to_index(t.row)] + more > 0) return false;
  }
  return true;
}

void LocalSearch::apply(int node, int choice, std::vector<int>& choices, std::vector<double>& excess) const {
  for (const RowTerm& t : rows_of_[to_index(node)]) {
    const std::vector<double>& use = problem_.rows[to_index(t.row)].terms[to_index(t.term)].use;
    excess[to_index(t.row)] += use[to_index(choice)] - use[to_index(choices[to_index(node)])];
  }
  choices[to_index(node)] = choice;
}

std::optional<std::vector<int>> LocalSearch::repaired(std::vector<int> choices) const {
  std::vector<double> excess = excess_of(problem_, choices);
  const size_t most_moves = 2 * choices.size();
  for (size_t move = 0; !is_within_limits(problem_, choices); ++move) {
    int best_node = -1, best_choice = -1;
    double best_price = kForbidden;
    for (int v = 0; v < static_cast<int>(choices.size()) && move < most_moves; ++v) {
      if (rows_of_[to_index(v)].empty()) continue;
      const double before = cost_at(v, choices[to_index(v)], choices);
      for (int k = 0; k < problem_.num_choices(v); ++k) {
        const double gain = -violation_change(v, choices[to_index(v)], k, excess);
        if (!(gain > 0)) continue;
        const double price = (cost_at(v, k, choices) - before) / gain;
        if (price < best_price) {
          best_price = price;
          best_node = v;
          best_choice = k;
        }
      }
    }
    if (best_node < 0) return std::nullopt;
    apply(best_node, best_choice, choices, excess);
  }
  return choices;
}

std::vector<int> LocalSearch::improved(std::vector<int> choices) const {
  std::vector<double> excess = excess_of(problem_, choices);
  for (bool changed = true; changed;) {
    changed = false;
    for (int v = 0; v < static_cast<int>(choices.size()); ++v) {
      const double before = cost_at(v, choices[to_index(v)], choices);
      double best = before - 1e-9 * std::abs(before);
      int best_choice = -1;
      for (int k = 0; k < problem_.num_choices(v); ++k) {
        if (k == choices[to_index(v)] || !keeps_rows(v, choices[to_index(v)], k, excess)) continue;
        const double cost = cost_at(v, k, choices);
        if (!(cost < best)) continue;
        best = cost;
        best_choice = k;
      }
      if (best_choice < 0) continue;
      apply(v, best_choice, choices, excess);
      changed = true;
    }
  }
  return choices;
}

}  // namespace altiplano
