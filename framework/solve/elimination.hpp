#pragma once
// Elimination: the minimum of a ChoiceProblem's costs (its rows apart) by dynamic programming over a tree
// decomposition: nodes are eliminated one after the other, each leaving a table over the neighbours it had (bucket
// elimination, Dechter, Artificial Intelligence 1999; order by least weight, Koster, Bodlaender, van Hoesel, Electronic
// Notes in Discrete Mathematics 2001). Exact and O(n K^(w+1)) for n nodes of K choices and width w. Where a table would
// grow beyond a bound it is split (mini-buckets, Dechter, Rish, JACM 2003): the minimum becomes a lower bound, the
// choices a good guess.
#include <cstdint>
#include <vector>

#include "framework/solve/choice_problem.hpp"

namespace altiplano {

class Elimination {
 public:
  using NodeCosts = std::vector<std::vector<double>>;
  struct Minimum {
    double bound = 0;          ///< the minimum, or not above it when split; infinite: nothing is allowed
    std::vector<int> choices;  ///< that reach it, lowest index first among equals; meaningless when `bound` is infinite
  };

  static constexpr int64_t kMostEntries = int64_t{1} << 22;  ///< of one table

  /// Fixes the order from the problem's edges, which must outlive this. No table is larger than `most_entries`.
  explicit Elimination(const ChoiceProblem& problem, int64_t most_entries = kMostEntries);

  /// For these costs of the nodes and the problem's edges. Not thread-safe: tables are kept for min_marginals.
  Minimum minimise(const NodeCosts& costs);
  /// After minimise of the same costs: [node][choice] = the minimum among all with that choice (a lower bound of it
  /// when split). The second pass of the same dynamic program, from the last node eliminated to the first.
  NodeCosts min_marginals(const NodeCosts& costs);

  bool is_exact() const { return split_.empty(); }
  const std::vector<int>& split_nodes() const { return split_; }  ///< whose tables were split
  int width() const { return width_; }                            ///< most neighbours of an eliminated node

 private:
  /// A table that a bucket sums up: a node's costs, an edge's, or the message of an earlier bucket.
  struct Factor {
    enum class Source : uint8_t { kNode, kEdge, kTurnedEdge, kMessage } source;
    int index;                     ///< of node, edge (turned: of turned_) or bucket
    std::vector<int64_t> strides;  ///< per node of the bucket's scope; 0: does not depend on it
    // Choices of the bucket's own node lie side by side.
  };
  struct Bucket {
    int node;
    std::vector<int> scope;  ///< other nodes, last fastest in the message: the one that is eliminated next
    int64_t combinations = 1;
    std::vector<Factor> factors;
  };
  struct Pending;
  class Odometer;

  void order_nodes(const ChoiceProblem& problem);
  void add_buckets(int node, std::vector<Pending> pending, std::vector<std::vector<Pending>>& of_node);
  Bucket make_bucket(int node, const std::vector<Pending>& group) const;
  Pending pending_of(int edge);
  const double* data_of(const Factor& factor, const NodeCosts& costs) const;
  std::vector<const double*> data_of(const Bucket& bucket, const NodeCosts& costs) const;
  bool depends_on_news(const Bucket& bucket, const NodeCosts& costs, const std::vector<bool>& is_new) const;
  /// Minima over the bucket's node; `column`: memory to work in.
  void send_message(size_t bucket, const NodeCosts& costs, std::vector<double>& column);
  std::vector<int> decode(const NodeCosts& costs) const;

  const ChoiceProblem& problem_;
  int64_t most_entries_;
  std::vector<int> order_, split_, position_;
  std::vector<std::vector<double>> turned_;  ///< costs of edges, [choice of b][choice of a]
  std::vector<Bucket> buckets_;
  std::vector<std::vector<double>> messages_;  ///< by bucket: minimum over its node, over `combinations`
  NodeCosts last_costs_;                       ///< of the last minimise, whose messages these are
  int width_ = 0;
};

}  // namespace altiplano
