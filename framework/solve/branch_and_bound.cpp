#include "framework/solve/branch_and_bound.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "framework/solve/improve.hpp"

namespace altiplano {

namespace {

constexpr int kFirstRounds = 120, kLaterRounds = 16;

struct Branch {
  double bound = -kForbidden;
  int64_t serial = 0;
  std::vector<double> prices;
  Allowed allowed;
  bool operator<(const Branch& other) const { return std::pair(bound, serial) < std::pair(other.bound, other.serial); }
};

/// What is left of one branch after bounding: where to branch, and by which measure of the choices.
struct Split {
  int node = -1;
  std::vector<uint8_t> first;  ///< choices of the node that go to the first child
};

class Search {
 public:
  Search(const ChoiceProblem& problem, const SearchLimits& limits, bool minimises_excess)
      : problem_(problem),
        limits_(limits),
        minimises_excess_(minimises_excess),
        relaxation_(problem, limits.deadline, limits.most_table_entries),
        local_(problem),
        uses_of_(problem.nodes.size()) {
    for (size_t r = 0; r < problem.rows.size(); ++r)
      for (const LimitTerm& term : problem.rows[r].terms)
        uses_of_[static_cast<size_t>(term.node)].emplace_back(r, &term.use);
  }

  SearchOutcome run(const std::vector<int>& start) {
    outcome_.width = relaxation_.width();
    if (!start.empty()) offer(start);
    Branch root;
    for (const auto& costs : problem_.nodes) {
      root.allowed.emplace_back();
      for (double cost : costs) root.allowed.back().push_back(cost != kForbidden);
    }
    root.prices.assign(minimises_excess_ ? 0 : problem_.rows.size(), 0);
    open_.insert(std::move(root));
    while (!open_.empty() && outcome_.num_branches < limits_.most_branches && !relaxation_.is_late()) {
      Branch branch = std::move(open_.extract(open_.begin()).value());
      if (branch.bound >= cutoff()) {
        closed_ = std::min(closed_, branch.bound);
        open_.clear();  // best first: the others are no better
        break;
      }
      ++outcome_.num_branches;
      expand(std::move(branch));
    }
    double bound = closed_;
    if (!open_.empty()) bound = std::min(bound, open_.begin()->bound);
    outcome_.bound = std::min(bound, outcome_.value);
    return outcome_;
  }

 private:
  /// Bounds from here on are good enough.
  double cutoff() const {
    if (outcome_.choices.empty()) return kForbidden;
    return outcome_.value - std::max(limits_.gap, 1e-10) * std::abs(outcome_.value);
  }

  void offer(const std::vector<int>& choices) {
    const double cost = cost_of(problem_, choices);
    if (cost == kForbidden) return;
    if (!minimises_excess_ && !is_within_limits(problem_, choices)) return;
    const double value = minimises_excess_ ? largest_excess(problem_, choices) : cost;
    if (!outcome_.choices.empty() && value >= outcome_.value) return;
    outcome_.value = value;
    outcome_.choices = choices;
  }

  void expand(Branch branch) {
    const bool is_root = branch.serial == 0;
    if (!minimises_excess_ && !propagate(branch.allowed)) return;
    if (is_decided(branch)) return close_decided(branch);
    for (int pass = 0; pass < (is_root ? 4 : 2); ++pass) {
      const size_t before = num_allowed(branch);
      Split split = minimises_excess_ ? bound_excess(branch, is_root) : bound_cost(branch, is_root);
      if (branch.bound >= cutoff()) {
        closed_ = std::min(closed_, branch.bound);
        return;
      }
      const size_t after = num_allowed(branch);
      if (after < before - before / 10 && pass == 0 && after > branch.allowed.size()) continue;  // worth another bound
      if (split.node >= 0) return add_children(branch, split);
      if (is_decided(branch)) return close_decided(branch);
      // The relaxation is solved: the bound is reached.
      closed_ = std::min(closed_, branch.bound);
      return;
    }
  }

  static size_t num_allowed(const Branch& branch) {
    size_t number = 0;
    for (const auto& node : branch.allowed) number += static_cast<size_t>(std::count(node.begin(), node.end(), 1));
    return number;
  }

  Relaxation::Answer bound_by(Branch& branch, int rounds, bool repairs) {
    auto answer = relaxation_.best_bound(branch.allowed, branch.prices, cutoff(), rounds);
    for (const Sample& sample : answer.others) offer(sample.choices);
    if (answer.within && answer.within->is_within) offer(local_.improved(answer.within->choices));
    if (answer.breaks && repairs)
      if (auto repaired = local_.repaired(answer.breaks->choices)) offer(local_.improved(*repaired));
    branch.bound = std::max(branch.bound, answer.bound);
    branch.prices = answer.prices;
    return answer;
  }

  Split bound_cost(Branch& branch, bool is_root) {
    // What is known to be reachable tells the ascent how far to go and when to stop.
    if (is_root && outcome_.choices.empty() && problem_.rows.size() > 1) {
      bound_by(branch, 0, true);
      if (branch.bound >= cutoff()) return {};
    }
    const auto answer =
        bound_by(branch, is_root ? kFirstRounds : kLaterRounds, is_root || outcome_.num_branches % 8 == 0);
    if (branch.bound >= cutoff()) return {};
    if (!relaxation_.is_late()) fix(branch, relaxation_.marginals(branch.allowed, branch.prices));
    return split_of(branch, answer);
  }

  Split bound_excess(Branch& branch, bool is_root) {
    auto excess = relaxation_.least_excess(branch.allowed, branch.prices, is_root ? kFirstRounds : kLaterRounds);
    if (!excess.choices.empty()) offer(excess.choices);
    branch.bound = std::max(branch.bound, excess.bound);
    branch.prices = excess.weights;
    if (branch.bound >= cutoff() || problem_.rows.size() == 1) return {};
    fix(branch, relaxation_.excess_marginals(branch.allowed, branch.prices));
    return widest(branch, branch.prices);
  }

  /// Choices whose own bound is no better than what is known cannot be missed.
  void fix(Branch& branch, const Elimination::NodeCosts& marginals) {
    const double cut = cutoff();
    if (cut == kForbidden) return;
    for (size_t v = 0; v < marginals.size(); ++v)
      for (size_t k = 0; k < marginals[v].size(); ++k) {
        if (!branch.allowed[v][k] || marginals[v][k] < cut) continue;
        branch.allowed[v][k] = 0;
        closed_ = std::min(closed_, marginals[v][k]);
        if (std::count(branch.allowed[v].begin(), branch.allowed[v].end(), 1) == 0) branch.bound = kForbidden;
      }
  }

  double priced_use(const std::vector<double>& prices, int node, int choice) const {
    double sum = 0;
    for (const auto& [row, use] : uses_of_[static_cast<size_t>(node)])
      if (row < prices.size()) sum += prices[row] * (*use)[static_cast<size_t>(choice)];
    return sum;
  }

  /// Takes out choices that no others can bring within a row. False: a row cannot be kept at all.
  bool propagate(Allowed& allowed) const {
    for (const LimitRow& row : problem_.rows) {
      double least = 0, size = std::abs(row.limit);
      std::vector<double> least_of_term;
      for (const LimitTerm& term : row.terms) {
        const auto& of_node = allowed[static_cast<size_t>(term.node)];
        double low = kForbidden;
        for (size_t k = 0; k < of_node.size(); ++k)
          if (of_node[k]) low = std::min(low, term.use[k]);
        least_of_term.push_back(low);
        least += low;
        size = std::max(size, std::abs(least));
      }
      const double spare = row.limit - least + 1e-9 * size;
      if (spare < 0) return false;
      for (size_t t = 0; t < row.terms.size(); ++t) {
        auto& of_node = allowed[static_cast<size_t>(row.terms[t].node)];
        for (size_t k = 0; k < of_node.size(); ++k)
          if (of_node[k] && row.terms[t].use[k] - least_of_term[t] > spare) of_node[k] = 0;
      }
    }
    return true;
  }

  static bool is_decided(const Branch& branch) { return num_allowed(branch) == branch.allowed.size(); }

  /// The bound of a branch without a choice is its value.
  void close_decided(const Branch& branch) {
    std::vector<int> choices;
    for (const auto& node : branch.allowed)
      choices.push_back(static_cast<int>(std::find(node.begin(), node.end(), 1) - node.begin()));
    offer(choices);
    const double cost = cost_of(problem_, choices);
    if (minimises_excess_)
      closed_ = std::min(closed_, cost == kForbidden ? kForbidden : largest_excess(problem_, choices));
    else if (is_within_limits(problem_, choices))
      closed_ = std::min(closed_, cost);
  }

  /// Where the two sides of the relaxation's answer differ most in what they use; failing that, where a table was
  /// split, and failing that anywhere there is a choice.
  Split split_of(const Branch& branch, const Relaxation::Answer& answer) const {
    Split split;
    if (answer.breaks && answer.within) {
      double most = 0;
      for (size_t v = 0; v < branch.allowed.size(); ++v) {
        const int a = answer.breaks->choices[v], b = answer.within->choices[v];
        if (a == b || !branch.allowed[v][static_cast<size_t>(a)] || !branch.allowed[v][static_cast<size_t>(b)])
          continue;
        const double use_a = priced_use(branch.prices, static_cast<int>(v), a);
        const double use_b = priced_use(branch.prices, static_cast<int>(v), b);
        if (split.node >= 0 && std::abs(use_a - use_b) <= most) continue;
        most = std::abs(use_a - use_b);
        split = halves(branch, static_cast<int>(v), a, (use_a + use_b) / 2);
      }
      if (split.node >= 0) return split;
    }
    for (int node : relaxation_.split_nodes())
      if (auto found = one_choice(branch, node); found.node >= 0) return found;
    if (answer.within && answer.within->is_within &&
        answer.within->cost <= branch.bound + 1e-9 * std::abs(branch.bound))
      return {};  // solved
    return widest(branch, branch.prices);
  }

  /// Choices that use less than `middle` (when that separates anything), else the one `choice`, against all others.
  Split halves(const Branch& branch, int node, int choice, double middle) const {
    const auto& allowed = branch.allowed[static_cast<size_t>(node)];
    Split split{node, std::vector<uint8_t>(allowed.size(), 0)};
    int inside = 0, all = 0;
    for (size_t k = 0; k < allowed.size(); ++k) {
      if (!allowed[k]) continue;
      ++all;
      split.first[k] = priced_use(branch.prices, node, static_cast<int>(k)) < middle;
      inside += split.first[k];
    }
    if (inside > 0 && inside < all) return split;
    std::fill(split.first.begin(), split.first.end(), 0);
    split.first[static_cast<size_t>(choice)] = 1;
    return split;
  }

  static Split one_choice(const Branch& branch, int node) {
    const auto& allowed = branch.allowed[static_cast<size_t>(node)];
    if (std::count(allowed.begin(), allowed.end(), 1) < 2) return {};
    Split split{node, std::vector<uint8_t>(allowed.size(), 0)};
    split.first[static_cast<size_t>(std::find(allowed.begin(), allowed.end(), 1) - allowed.begin())] = 1;
    return split;
  }

  Split widest(const Branch& branch, const std::vector<double>& prices) const {
    int best = -1;
    double most = -1;
    for (size_t v = 0; v < branch.allowed.size(); ++v) {
      double low = kForbidden, high = -kForbidden;
      int number = 0;
      for (size_t k = 0; k < branch.allowed[v].size(); ++k) {
        if (!branch.allowed[v][k]) continue;
        const double use = priced_use(prices, static_cast<int>(v), static_cast<int>(k));
        low = std::min(low, use);
        high = std::max(high, use);
        ++number;
      }
      if (number < 2 || high - low <= most) continue;
      most = high - low;
      best = static_cast<int>(v);
    }
    return best < 0 ? Split{} : one_choice(branch, best);
  }

  void add_children(const Branch& branch, const Split& split) {
    for (uint8_t side : {uint8_t{1}, uint8_t{0}}) {
      Branch child = branch;
      child.serial = ++serial_;
      auto& allowed = child.allowed[static_cast<size_t>(split.node)];
      for (size_t k = 0; k < allowed.size(); ++k) allowed[k] = allowed[k] && split.first[k] == side;
      open_.insert(std::move(child));
    }
  }

  const ChoiceProblem& problem_;
  const SearchLimits& limits_;
  bool minimises_excess_;
  Relaxation relaxation_;
  LocalSearch local_;
  std::set<Branch> open_;
  SearchOutcome outcome_;
  std::vector<std::vector<std::pair<size_t, const std::vector<double>*>>> uses_of_;  ///< by node: row and uses
  double closed_ = kForbidden;  ///< least bound of what was given up
  int64_t serial_ = 0;
};

}  // namespace

SearchOutcome least_cost(const ChoiceProblem& problem, const SearchLimits& limits, const std::vector<int>& start) {
  return Search(problem, limits, false).run(start);
}

SearchOutcome least_excess(const ChoiceProblem& problem, const SearchLimits& limits) {
  return Search(problem, limits, true).run({});
}

}  // namespace altiplano
