#include "framework/solve/choice_problem.hpp"

#include <algorithm>
#include <cmath>

namespace altiplano {

namespace {

/// Sums of many uses differ in their last bits by order.
constexpr double kRounding = 1e-9;

Status check_costs(const std::vector<double>& costs, const std::string& what) {
  for (double cost : costs)
    if (std::isnan(cost) || cost == -kForbidden) return invalid_argument("{} holds the cost {}", what, cost);
  return Status::ok();
}

Status check_row(const ChoiceProblem& problem, const LimitRow& row, size_t r) {
  if (!std::isfinite(row.limit)) return invalid_argument("row {} has the limit {}", r, row.limit);
  for (const LimitTerm& term : row.terms) {
    if (term.node < 0 || static_cast<size_t>(term.node) >= problem.nodes.size())
      return invalid_argument("row {} names node {} of {}", r, term.node, problem.nodes.size());
    if (term.use.size() != problem.nodes[static_cast<size_t>(term.node)].size())
      return invalid_argument("row {} has {} uses for the {} choices of node {}", r, term.use.size(),
                              problem.num_choices(term.node), term.node);
    for (double use : term.use)
      if (!std::isfinite(use)) return invalid_argument("row {} holds the use {} of node {}", r, use, term.node);
  }
  return Status::ok();
}

double use_of(const LimitRow& row, const std::vector<int>& choices) {
  double use = 0;
  for (const LimitTerm& term : row.terms) use += term.use[static_cast<size_t>(choices[static_cast<size_t>(term.node)])];
  return use;
}

}  // namespace

Status ChoiceProblem::verify() const {
  for (size_t v = 0; v < nodes.size(); ++v) {
    if (nodes[v].empty()) return invalid_argument("node {} has no choices", v);
    ALTIPLANO_RETURN_IF_ERROR(check_costs(nodes[v], fmt::format("node {}", v)));
  }
  const int num_nodes = static_cast<int>(nodes.size());
  for (size_t e = 0; e < edges.size(); ++e) {
    const ChoiceEdge& edge = edges[e];
    if (edge.a < 0 || edge.b < 0 || edge.a >= num_nodes || edge.b >= num_nodes || edge.a == edge.b)
      return invalid_argument("edge {} joins nodes {} and {} of {}", e, edge.a, edge.b, num_nodes);
    const size_t size = nodes[static_cast<size_t>(edge.a)].size() * nodes[static_cast<size_t>(edge.b)].size();
    if (edge.costs.size() != size) return invalid_argument("edge {} has {} costs, not {}", e, edge.costs.size(), size);
    ALTIPLANO_RETURN_IF_ERROR(check_costs(edge.costs, fmt::format("edge {}", e)));
  }
  for (size_t r = 0; r < rows.size(); ++r) ALTIPLANO_RETURN_IF_ERROR(check_row(*this, rows[r], r));
  return Status::ok();
}

double cost_of(const ChoiceProblem& problem, const std::vector<int>& choices) {
  double cost = 0;
  for (size_t v = 0; v < problem.nodes.size(); ++v) cost += problem.nodes[v][static_cast<size_t>(choices[v])];
  for (const ChoiceEdge& edge : problem.edges) {
    const auto a = static_cast<size_t>(choices[static_cast<size_t>(edge.a)]);
    const auto b = static_cast<size_t>(choices[static_cast<size_t>(edge.b)]);
    cost += edge.costs[a * problem.nodes[static_cast<size_t>(edge.b)].size() + b];
  }
  return cost;
}

std::vector<double> excess_of(const ChoiceProblem& problem, const std::vector<int>& choices) {
  std::vector<double> excess;
  for (const LimitRow& row : problem.rows) excess.push_back(use_of(row, choices) - row.limit);
  return excess;
}

double largest_excess(const ChoiceProblem& problem, const std::vector<int>& choices) {
  double most = -kForbidden;
  for (double excess : excess_of(problem, choices)) most = std::max(most, excess);
  return most;
}

bool is_within_limits(const ChoiceProblem& problem, const std::vector<int>& choices) {
  for (const LimitRow& row : problem.rows) {
    const double use = use_of(row, choices);
    if (use - row.limit > kRounding * std::max(std::abs(use), std::abs(row.limit))) return false;
  }
  return true;
}

}  // namespace altiplano
