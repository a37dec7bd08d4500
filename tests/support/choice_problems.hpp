#pragma once
// Choice problems to solve: random ones, and the answer by trying everything.
#include <cstdint>
#include <random>
#include <vector>

#include "framework/solve/choice_problem.hpp"

namespace altiplano::test {

enum class ProblemGraph : uint8_t { kChain, kTransformer, kRandom };

struct RandomProblem {
  ProblemGraph graph = ProblemGraph::kChain;
  int nodes = 10, least_choices = 2, most_choices = 4;
  double forbidden = 0;  ///< share of edge costs that are forbidden
  int rows = 0;
  double tightness = 0.5;  ///< limits between the least (0) and the most (1) that nodes use alone
};

/// Edges of a shape of graph, lower index first.
inline std::vector<std::pair<int, int>> random_edges(const RandomProblem& want, std::mt19937_64& random) {
  std::vector<std::pair<int, int>> edges;
  for (int v = 1; v < want.nodes; ++v) {
    switch (want.graph) {
      case ProblemGraph::kChain:
        edges.emplace_back(v - 1, v);
        break;
      case ProblemGraph::kTransformer:  // blocks of ten: a chain with a skip over the whole and branches q, k, v
        edges.emplace_back(v - 1, v);
        if (v % 10 == 4 || v % 10 == 9) edges.emplace_back(v - 4, v);
        break;
      case ProblemGraph::kRandom:
        edges.emplace_back(std::max<int>(0, v - 1 - static_cast<int>(random() % 3)), v);
        if (v > 3 && random() % 3 == 0) edges.emplace_back(v - 2 - static_cast<int>(random() % 2), v);
        break;
    }
  }
  return edges;
}

inline ChoiceProblem random_problem(const RandomProblem& want, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto uniform = [&](double low, double high) {
    return low + (high - low) * (static_cast<double>(random() >> 11) / 9007199254740992.0);
  };
  ChoiceProblem problem;
  for (int v = 0; v < want.nodes; ++v) {
    const auto span = static_cast<uint64_t>(want.most_choices - want.least_choices + 1);
    std::vector<double> costs(static_cast<size_t>(want.least_choices) + random() % span);
    for (double& cost : costs) cost = uniform(0, 10);
    problem.nodes.push_back(std::move(costs));
  }
  for (auto [a, b] : random_edges(want, random)) {
    ChoiceEdge edge{a, b, {}};
    for (size_t i = 0; i < problem.nodes[static_cast<size_t>(a)].size() * problem.nodes[static_cast<size_t>(b)].size();
         ++i)
      edge.costs.push_back(uniform(0, 1) < want.forbidden ? kForbidden : random() % 3 == 0 ? 0 : uniform(0, 6));
    problem.edges.push_back(std::move(edge));
  }
  for (int r = 0; r < want.rows; ++r) {
    LimitRow row;
    double low = 0, high = 0;
    for (int v = 0; v < want.nodes; ++v) {
      if (want.rows > 1 && random() % 3 == 0) continue;
      LimitTerm term{v, {}};
      // What costs less uses more, as memory and time do.
      for (double cost : problem.nodes[static_cast<size_t>(v)])
        term.use.push_back(uniform(0, 4) + (10 - cost) * uniform(0, 1));
      low += *std::min_element(term.use.begin(), term.use.end());
      high += *std::max_element(term.use.begin(), term.use.end());
      row.terms.push_back(std::move(term));
    }
    row.limit = low + (high - low) * want.tightness;
    problem.rows.push_back(std::move(row));
  }
  return problem;
}

/// Everything tried: the least cost within the rows, and the smallest possible largest excess (minus infinity without
/// rows).
struct Exhaustive {
  double cost = kForbidden;
  double excess = kForbidden;
};

inline Exhaustive try_all(const ChoiceProblem& problem) {
  Exhaustive best;
  std::vector<int> choices(problem.nodes.size(), 0);
  while (true) {
    const double cost = cost_of(problem, choices);
    if (cost != kForbidden) {
      best.excess = std::min(best.excess, largest_excess(problem, choices));
      if (cost < best.cost && is_within_limits(problem, choices)) best.cost = cost;
    }
    size_t v = 0;
    for (; v < choices.size(); ++v) {
      if (++choices[v] < problem.num_choices(static_cast<int>(v))) break;
      choices[v] = 0;
    }
    if (v == choices.size()) return best;
  }
}

}  // namespace altiplano::test
