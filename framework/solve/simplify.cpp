#include "framework/solve/simplify.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace altiplano {

namespace {

class Simplifier {
 public:
  explicit Simplifier(const ChoiceProblem& problem) : nodes_(problem.nodes), rows_(problem.rows) {
    for (const auto& costs : nodes_) {
      left_.emplace_back();
      for (size_t k = 0; k < costs.size(); ++k) left_.back().push_back(static_cast<int>(k));
    }
    join_edges(problem);
    edges_of_.resize(nodes_.size());
    terms_of_.resize(nodes_.size());
    for (size_t r = 0; r < rows_.size(); ++r)
      for (size_t t = 0; t < rows_[r].terms.size(); ++t) terms_of_[to_index(rows_[r].terms[t].node)].emplace_back(r, t);
    for (size_t e = 0; e < edges_.size(); ++e) {
      edges_of_[to_index(edges_[e].a)].push_back(e);
      edges_of_[to_index(edges_[e].b)].push_back(e);
    }
  }

  SimplifiedProblem run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (ChoiceEdge& edge : edges_) changed = fold_edge(edge) || changed;
      for (int v = 0; v < static_cast<int>(nodes_.size()); ++v) changed = shave(v) || changed;
    }
    return collect();
  }

 private:
  double edge_cost(const ChoiceEdge& edge, int choice_a, int choice_b) const {
    return edge.costs[to_index(choice_a) * nodes_[to_index(edge.b)].size() + to_index(choice_b)];
  }

  /// Edges between the same two nodes add up.
  void join_edges(const ChoiceProblem& problem) {
    std::map<std::pair<int, int>, size_t> known;
    for (const ChoiceEdge& edge : problem.edges) {
      const int a = std::min(edge.a, edge.b), b = std::max(edge.a, edge.b);
      auto [place, fresh] = known.emplace(std::pair(a, b), edges_.size());
      if (fresh) edges_.push_back({a, b, std::vector<double>(edge.costs.size(), 0)});
      std::vector<double>& costs = edges_[place->second].costs;
      const size_t size_a = nodes_[to_index(a)].size(), size_b = nodes_[to_index(b)].size();
      for (size_t i = 0; i < size_a; ++i)
        for (size_t j = 0; j < size_b; ++j)
          costs[i * size_b + j] += edge.a == a ? edge.costs[i * size_b + j] : edge.costs[j * size_a + i];
    }
  }

  /// An edge whose costs are f(a) + g(b) is no edge; nor is one to a node that is decided.
  bool fold_edge(ChoiceEdge& edge) {
    if (edge.costs.empty()) return false;
    const std::vector<int>&as = left_[to_index(edge.a)], &bs = left_[to_index(edge.b)];
    if (as.size() > 1 && bs.size() > 1 && !is_sum(edge)) return false;
    const double corner = as.size() > 1 && bs.size() > 1 ? edge_cost(edge, as[0], bs[0]) : 0;
    const bool to_a = bs.size() == 1, to_b = as.size() == 1;
    if (to_a || !to_b)
      for (int a : as) nodes_[to_index(edge.a)][to_index(a)] += edge_cost(edge, a, bs[0]) - corner;
    if (!to_a)
      for (int b : bs) nodes_[to_index(edge.b)][to_index(b)] += edge_cost(edge, as[0], b);
    edge.costs.clear();
    return true;
  }

  bool is_sum(const ChoiceEdge& edge) const {
    const std::vector<int>&as = left_[to_index(edge.a)], &bs = left_[to_index(edge.b)];
    const double corner = edge_cost(edge, as[0], bs[0]);
    for (int a : as)
      for (int b : bs) {
        const double cost = edge_cost(edge, a, b);
        const double sum = edge_cost(edge, a, bs[0]) + edge_cost(edge, as[0], b) - corner;
        if (!std::isfinite(cost) || !std::isfinite(sum) ||
            !(std::abs(cost - sum) <= 1e-13 * (std::abs(cost) + std::abs(corner))))
          return false;
      }
    return true;
  }

  /// Whether `better` is at least as good as `worse` whatever the others choose.
  bool dominates(int v, int better, int worse) const {
    if (nodes_[to_index(v)][to_index(better)] > nodes_[to_index(v)][to_index(worse)]) return false;
    for (auto [r, t] : terms_of_[to_index(v)]) {
      const std::vector<double>& use = rows_[r].terms[t].use;
      if (use[to_index(better)] > use[to_index(worse)]) return false;
    }
    for (size_t e : edges_of_[to_index(v)]) {
      const ChoiceEdge& edge = edges_[e];
      if (edge.costs.empty()) continue;
      const bool is_a = edge.a == v;
      for (int other : left_[to_index(is_a ? edge.b : edge.a)]) {
        const double good = is_a ? edge_cost(edge, better, other) : edge_cost(edge, other, better);
        const double bad = is_a ? edge_cost(edge, worse, other) : edge_cost(edge, other, worse);
        if (good > bad) return false;
      }
    }
    return true;
  }

  /// The first of equals stays.
  bool shave(int v) {
    std::vector<int>& left = left_[to_index(v)];
    const size_t before = left.size();
    for (size_t i = 0; i < left.size();) {
      bool worse = left.size() > 1 && nodes_[to_index(v)][to_index(left[i])] == kForbidden;
      for (size_t j = 0; j < left.size() && !worse; ++j)
        worse = i != j && dominates(v, left[j], left[i]) && (j < i || !dominates(v, left[i], left[j]));
      if (worse)
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      else
        ++i;
    }
    return left.size() != before;
  }

  SimplifiedProblem collect() const {
    SimplifiedProblem out;
    out.choice_of = left_;
    for (size_t v = 0; v < nodes_.size(); ++v) {
      if (left_[v].size() == 1) {
        out.constant += nodes_[v][to_index(left_[v][0])];
        out.node_of.push_back(-1);
        continue;
      }
      out.node_of.push_back(static_cast<int>(out.problem.nodes.size()));
      out.problem.nodes.emplace_back();
      for (int k : left_[v]) out.problem.nodes.back().push_back(nodes_[v][to_index(k)]);
    }
    for (const ChoiceEdge& edge : edges_) {
      if (edge.costs.empty()) continue;
      ChoiceEdge kept{out.node_of[to_index(edge.a)], out.node_of[to_index(edge.b)], {}};
      for (int a : left_[to_index(edge.a)])
        for (int b : left_[to_index(edge.b)]) kept.costs.push_back(edge_cost(edge, a, b));
      out.problem.edges.push_back(std::move(kept));
    }
    for (const LimitRow& row : rows_) add_row(row, out);
    drop_implied_rows(out.problem);
    return out;
  }

  /// Uses are counted from the least of each node, so that rows can be compared; what is left to bind goes on.
  void add_row(const LimitRow& row, SimplifiedProblem& out) const {
    LimitRow kept{row.limit, {}};
    double most = 0, size = std::abs(row.limit);
    for (const LimitTerm& term : row.terms) {
      const std::vector<int>& left = left_[to_index(term.node)];
      LimitTerm uses{out.node_of[to_index(term.node)], {}};
      for (int k : left) uses.use.push_back(term.use[to_index(k)]);
      const auto [low, high] = std::minmax_element(uses.use.begin(), uses.use.end());
      const double least = *low, spread = *high - *low;
      size += std::abs(*high);
      kept.limit -= least;
      if (spread == 0) continue;
      for (double& use : uses.use) use -= least;
      most += spread;
      kept.terms.push_back(std::move(uses));
    }
    if (most - kept.limit <= 1e-12 * size) return;
    kept.limit += 1e-12 * size;  // what rounding took from a limit that fits exactly
    out.problem.rows.push_back(std::move(kept));
  }

  /// Rows that another implies: whatever is chosen, they use at most so much more as their limit is larger. The first
  /// of equals stays.
  static void drop_implied_rows(ChoiceProblem& problem) {
    const size_t num_nodes = problem.nodes.size();
    std::vector<std::vector<const std::vector<double>*>> uses;  // by row and node; null: none
    std::vector<char> repeats;                                  // a node twice in a row: not compared
    for (const LimitRow& row : problem.rows) {
      uses.emplace_back(num_nodes, nullptr);
      repeats.push_back(0);
      for (const LimitTerm& term : row.terms) {
        repeats.back() = repeats.back() || uses.back()[to_index(term.node)] != nullptr;
        uses.back()[to_index(term.node)] = &term.use;
      }
    }
    auto implies = [&](size_t q, size_t r) {
      if (repeats[q] || repeats[r]) return false;
      const double spare = problem.rows[r].limit - problem.rows[q].limit;
      double more = 0;
      for (size_t v = 0; v < num_nodes; ++v) more += most_more(uses[r][v], uses[q][v]);
      return more <= spare;
    };
    std::vector<LimitRow> kept;
    for (size_t r = 0; r < problem.rows.size(); ++r) {
      bool is_implied = false;
      for (size_t q = 0; q < problem.rows.size() && !is_implied; ++q)
        is_implied = q != r && implies(q, r) && (q < r || !implies(r, q));
      if (!is_implied) kept.push_back(problem.rows[r]);
    }
    problem.rows = std::move(kept);
  }

  /// By how much the first may use more than the second, whatever is chosen; null: nothing, and the least use is 0.
  static double most_more(const std::vector<double>* mine, const std::vector<double>* others) {
    if (mine == nullptr) return 0;
    double most = -kForbidden;
    for (size_t k = 0; k < mine->size(); ++k)
      most = std::max(most, (*mine)[k] - (others == nullptr ? 0 : (*others)[k]));
    return most;
  }

  std::vector<std::vector<double>> nodes_;
  std::vector<ChoiceEdge> edges_;  ///< no costs: folded
  std::vector<LimitRow> rows_;
  std::vector<std::vector<int>> left_;
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<std::vector<std::pair<size_t, size_t>>> terms_of_;
};

}  // namespace

std::vector<int> SimplifiedProblem::restored(const std::vector<int>& choices) const {
  std::vector<int> out;
  for (size_t v = 0; v < node_of.size(); ++v)
    out.push_back(node_of[v] < 0 ? choice_of[v][0] : choice_of[v][to_index(choices[to_index(node_of[v])])]);
  return out;
}

SimplifiedProblem simplify(const ChoiceProblem& problem) {
  return Simplifier(problem).run();
}

}  // namespace altiplano
