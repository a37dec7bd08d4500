#include "framework/solve/elimination.hpp"

#include <algorithm>
#include <set>

namespace altiplano {

namespace {

void add_column(const double* from, size_t size, double* to) {
  for (size_t k = 0; k < size; ++k) to[k] += from[k];
}

double least_sum(const double* a, const double* b, size_t size) {
  double least = a[0] + b[0];
  for (size_t k = 1; k < size; ++k) least = std::min(least, a[k] + b[k]);
  return least;
}

}  // namespace

/// A factor not yet summed up, and the nodes it depends on, last fastest.
struct Elimination::Pending {
  Factor::Source source;
  int index;
  std::vector<int> scope;
};

/// Runs over all combinations of a bucket's scope, or of its first nodes, and keeps every factor's offset.
class Elimination::Odometer {
 public:
  Odometer(const Bucket& bucket, const ChoiceProblem& problem) : Odometer(bucket, problem, bucket.scope.size()) {}
  Odometer(const Bucket& bucket, const ChoiceProblem& problem, size_t num_nodes) : bucket_(bucket), digits_(num_nodes) {
    for (int node : bucket.scope) sizes_.push_back(problem.num_choices(node));
    offsets_.assign(bucket.factors.size(), 0);
  }
  int64_t offset(size_t factor) const { return offsets_[factor]; }
  void next() {
    for (size_t d = digits_.size(); d-- > 0;) {
      const bool wraps = ++digits_[d] == sizes_[d];
      const int64_t step = wraps ? 1 - sizes_[d] : 1;
      for (size_t f = 0; f < offsets_.size(); ++f) offsets_[f] += step * bucket_.factors[f].strides[d];
      if (!wraps) return;
      digits_[d] = 0;
    }
  }
  /// Sums of all factors for every choice of the bucket's node.
  void sum(const std::vector<const double*>& data, std::vector<double>& column) const {
    const size_t size = column.size();
    double* const to = column.data();
    std::copy_n(data[0] + offsets_[0], size, to);
    for (size_t f = 1; f < offsets_.size(); ++f) add_column(data[f] + offsets_[f], size, to);
  }

 private:
  const Bucket& bucket_;
  std::vector<int> digits_, sizes_;
  std::vector<int64_t> offsets_;
};

Elimination::Elimination(const ChoiceProblem& problem, int64_t most_entries)
    : problem_(problem), most_entries_(most_entries), position_(problem.nodes.size()) {
  order_nodes(problem);
  for (size_t i = 0; i < order_.size(); ++i) position_[to_index(order_[i])] = static_cast<int>(i);
  std::vector<std::vector<Pending>> of_node(problem.nodes.size());  // by the first of their nodes to go
  for (int node : order_) of_node[to_index(node)].push_back({Factor::Source::kNode, node, {node}});
  for (size_t e = 0; e < problem.edges.size(); ++e) {
    const ChoiceEdge& edge = problem.edges[e];
    const int first = position_[to_index(edge.a)] < position_[to_index(edge.b)] ? edge.a : edge.b;
    of_node[to_index(first)].push_back(pending_of(static_cast<int>(e)));
  }
  for (int node : order_) add_buckets(node, std::move(of_node[to_index(node)]), of_node);
  messages_.resize(buckets_.size());
}

/// With the node that goes first last in its scope.
Elimination::Pending Elimination::pending_of(int e) {
  const ChoiceEdge& edge = problem_.edges[to_index(e)];
  if (position_[to_index(edge.b)] < position_[to_index(edge.a)]) return {Factor::Source::kEdge, e, {edge.a, edge.b}};
  const size_t size_a = problem_.nodes[to_index(edge.a)].size(), size_b = problem_.nodes[to_index(edge.b)].size();
  std::vector<double>& turned = turned_.emplace_back(edge.costs.size());
  for (size_t a = 0; a < size_a; ++a)
    for (size_t b = 0; b < size_b; ++b) turned[b * size_a + a] = edge.costs[a * size_b + b];
  return {Factor::Source::kTurnedEdge, static_cast<int>(turned_.size()) - 1, {edge.b, edge.a}};
}

/// Least weight first: the size of the table that the node would need now.
void Elimination::order_nodes(const ChoiceProblem& problem) {
  std::vector<std::set<int>> neighbours(problem.nodes.size());
  for (const ChoiceEdge& edge : problem.edges) {
    neighbours[to_index(edge.a)].insert(edge.b);
    neighbours[to_index(edge.b)].insert(edge.a);
  }
  std::vector<double> weights(problem.nodes.size());
  auto weigh = [&](int node) {
    double weight = problem.num_choices(node);
    for (int other : neighbours[to_index(node)]) weight *= problem.num_choices(other);
    return weights[to_index(node)] = weight;
  };
  std::set<std::pair<double, int>> queue;
  for (int node = 0; node < static_cast<int>(problem.nodes.size()); ++node) queue.emplace(weigh(node), node);
  while (!queue.empty()) {
    const int node = queue.begin()->second;
    queue.erase(queue.begin());
    order_.push_back(node);
    const std::set<int> around = std::move(neighbours[to_index(node)]);
    for (int a : around) {
      queue.erase({weights[to_index(a)], a});
      neighbours[to_index(a)].erase(node);
      for (int b : around)
        if (b != a) neighbours[to_index(a)].insert(b);
      queue.emplace(weigh(a), a);
    }
  }
}

/// Distributes what still depends on `node` over as few buckets as the largest table allows, and hands their messages
/// on.
void Elimination::add_buckets(int node, std::vector<Pending> pending, std::vector<std::vector<Pending>>& of_node) {
  struct Group {
    std::set<int> scope;
    double entries;
    std::vector<Pending> factors;
  };
  std::vector<Group> groups;
  std::stable_sort(pending.begin(), pending.end(),
                   [](const Pending& a, const Pending& b) { return a.scope.size() > b.scope.size(); });
  auto entries_of = [&](const std::set<int>& scope) {
    double entries = 1;
    for (int n : scope) entries *= problem_.num_choices(n);
    return entries;
  };
  for (Pending& factor : pending) {
    bool placed = false;
    for (Group& group : groups) {
      std::set<int> scope = group.scope;
      scope.insert(factor.scope.begin(), factor.scope.end());
      const double entries = entries_of(scope);
      if (scope.size() != group.scope.size() && entries > static_cast<double>(most_entries_)) continue;
      group.scope = std::move(scope);
      group.factors.push_back(std::move(factor));
      placed = true;
      break;
    }
    if (placed) continue;
    groups.push_back({{factor.scope.begin(), factor.scope.end()}, 0, {}});
    groups.back().factors.push_back(std::move(factor));
  }
  if (groups.size() > 1) split_.push_back(node);
  for (const Group& group : groups) {
    buckets_.push_back(make_bucket(node, group.factors));
    const Bucket& bucket = buckets_.back();
    width_ = std::max(width_, static_cast<int>(bucket.scope.size()));
    if (bucket.scope.empty()) continue;
    of_node[to_index(bucket.scope.back())].push_back(
        {Factor::Source::kMessage, static_cast<int>(buckets_.size()) - 1, bucket.scope});
  }
}

Elimination::Bucket Elimination::make_bucket(int node, const std::vector<Pending>& group) const {
  Bucket bucket;
  bucket.node = node;
  std::set<int> scope;
  for (const Pending& pending : group) scope.insert(pending.scope.begin(), pending.scope.end());
  scope.erase(node);
  bucket.scope.assign(scope.begin(), scope.end());
  if (!bucket.scope.empty()) {
    const auto next = std::ranges::min_element(bucket.scope, {}, [&](int n) { return position_[to_index(n)]; });
    std::rotate(next, next + 1, bucket.scope.end());
  }
  for (int n : bucket.scope) bucket.combinations *= problem_.num_choices(n);
  for (const Pending& pending : group) {
    Factor factor{pending.source, pending.index, std::vector<int64_t>(bucket.scope.size(), 0)};
    int64_t stride = 1;
    for (size_t i = pending.scope.size(); i-- > 0;) {
      const int n = pending.scope[i];
      if (n != node)
        factor.strides[static_cast<size_t>(std::ranges::find(bucket.scope, n) - bucket.scope.begin())] = stride;
      stride *= problem_.num_choices(n);
    }
    bucket.factors.push_back(std::move(factor));
  }
  return bucket;
}

const double* Elimination::data_of(const Factor& factor, const NodeCosts& costs) const {
  switch (factor.source) {
    case Factor::Source::kNode:
      return costs[to_index(factor.index)].data();
    case Factor::Source::kEdge:
      return problem_.edges[to_index(factor.index)].costs.data();
    case Factor::Source::kTurnedEdge:
      return turned_[to_index(factor.index)].data();
    case Factor::Source::kMessage:
      break;
  }
  return messages_[to_index(factor.index)].data();
}

std::vector<const double*> Elimination::data_of(const Bucket& bucket, const NodeCosts& costs) const {
  std::vector<const double*> data;
  for (const Factor& factor : bucket.factors) data.push_back(data_of(factor, costs));
  return data;
}

Elimination::Minimum Elimination::minimise(const NodeCosts& costs) {
  Minimum minimum;
  std::vector<double> column;
  std::vector<bool> is_new(buckets_.size());
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    is_new[b] = depends_on_news(bucket, costs, is_new);
    if (is_new[b]) send_message(b, costs, column);
    if (bucket.scope.empty()) minimum.bound += messages_[b][0];
  }
  last_costs_ = costs;
  minimum.choices = decode(costs);
  return minimum;
}

/// Whether anything that the bucket sums up is not what it was: prices change the costs of few nodes.
bool Elimination::depends_on_news(const Bucket& bucket, const NodeCosts& costs, const std::vector<bool>& is_new) const {
  if (last_costs_.empty()) return true;
  return std::ranges::any_of(bucket.factors, [&](const Factor& factor) {
    const size_t index = to_index(factor.index);
    if (factor.source == Factor::Source::kNode) return costs[index] != last_costs_[index];
    return factor.source == Factor::Source::kMessage && is_new[index];
  });
}

void Elimination::send_message(size_t b, const NodeCosts& costs, std::vector<double>& column) {
  const Bucket& bucket = buckets_[b];
  const std::vector<const double*> data = data_of(bucket, costs);
  column.resize(to_index(problem_.num_choices(bucket.node)));
  std::vector<double>& message = messages_[b];
  message.resize(static_cast<size_t>(bucket.combinations));
  if (bucket.scope.empty()) {
    Odometer(bucket, problem_).sum(data, column);
    message[0] = *std::min_element(column.begin(), column.end());
    return;
  }
  // What does not depend on the scope's last node is summed up once for all its choices.
  std::vector<size_t> fixed, moving;
  for (size_t f = 0; f < data.size(); ++f) (bucket.factors[f].strides.back() == 0 ? fixed : moving).push_back(f);
  const int row = problem_.num_choices(bucket.scope.back());
  const size_t size = column.size();
  std::vector<double> base(size);
  Odometer rows(bucket, problem_, bucket.scope.size() - 1);
  for (size_t begin = 0; begin < message.size(); begin += to_index(row)) {
    for (double& sum : base) sum = 0;
    for (size_t f : fixed) add_column(data[f] + rows.offset(f), size, base.data());
    for (int i = 0; i < row; ++i) {
      auto at = [&](size_t f) { return data[f] + rows.offset(f) + i * bucket.factors[f].strides.back(); };
      const double* sums = base.data();
      for (size_t m = 0; m + 1 < moving.size(); ++m) {
        const double* const from = at(moving[m]);
        for (size_t k = 0; k < size; ++k) column[k] = sums[k] + from[k];
        sums = column.data();
      }
      message[begin + to_index(i)] = least_sum(sums, at(moving.back()), size);
    }
    rows.next();
  }
}

/// From the last node to the first: the best choice given those of the nodes in its tables.
std::vector<int> Elimination::decode(const NodeCosts& costs) const {
  std::vector<int> choices(problem_.nodes.size(), 0);
  std::vector<double> column;
  for (size_t end = buckets_.size(); end > 0;) {
    const int node = buckets_[end - 1].node;
    column.assign(to_index(problem_.num_choices(node)), 0.0);
    while (end > 0 && buckets_[end - 1].node == node) {
      for (const Factor& factor : buckets_[end - 1].factors) {
        const double* from = data_of(factor, costs);
        for (size_t d = 0; d < factor.strides.size(); ++d)
          from += factor.strides[d] * choices[to_index(buckets_[end - 1].scope[d])];
        add_column(from, column.size(), column.data());
      }
      --end;
    }
    choices[to_index(node)] = static_cast<int>(std::min_element(column.begin(), column.end()) - column.begin());
  }
  return choices;
}

Elimination::NodeCosts Elimination::min_marginals(const NodeCosts& costs) {
  NodeCosts marginals;
  for (const auto& node : costs) marginals.emplace_back(node.size(), -kForbidden);
  // By bucket: what all others add at least, over the bucket's scope. Separate components add their minima.
  std::vector<std::vector<double>> outside(buckets_.size());
  double roots = 0;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const bool is_root = buckets_[b].scope.empty();
    outside[b].assign(messages_[b].size(), is_root ? 0 : kForbidden);
    if (is_root) roots += messages_[b][0];
  }
  std::vector<double> column, best;
  for (size_t b = buckets_.size(); b-- > 0;) {
    const Bucket& bucket = buckets_[b];
    if (bucket.scope.empty()) outside[b][0] = roots == kForbidden ? 0 : roots - messages_[b][0];
    const std::vector<const double*> data = data_of(bucket, costs);
    column.resize(to_index(problem_.num_choices(bucket.node)));
    best.assign(column.size(), kForbidden);
    Odometer odometer(bucket, problem_);
    for (int64_t c = 0; c < bucket.combinations; ++c) {
      odometer.sum(data, column);
      for (size_t k = 0; k < column.size(); ++k) {
        column[k] += outside[b][static_cast<size_t>(c)];
        best[k] = std::min(best[k], column[k]);
      }
      for (size_t f = 0; f < bucket.factors.size(); ++f) {
        const Factor& factor = bucket.factors[f];
        if (factor.source != Factor::Source::kMessage) continue;
        double* to = outside[to_index(factor.index)].data() + odometer.offset(f);
        for (size_t k = 0; k < column.size(); ++k) {
          double& entry = to[k];
          entry = std::min(entry, column[k]);
        }
      }
      odometer.next();
    }
    for (const Factor& factor : bucket.factors) {
      if (factor.source != Factor::Source::kMessage) continue;
      const std::vector<double>& message = messages_[to_index(factor.index)];
      std::vector<double>& to = outside[to_index(factor.index)];
      for (size_t i = 0; i < to.size(); ++i) to[i] = message[i] == kForbidden ? 0 : to[i] - message[i];
    }
    std::vector<double>& of_node = marginals[to_index(bucket.node)];
    for (size_t k = 0; k < best.size(); ++k) of_node[k] = std::max(of_node[k], best[k]);
  }
  return marginals;
}

}  // namespace altiplano
