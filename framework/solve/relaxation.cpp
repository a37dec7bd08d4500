#include "framework/solve/relaxation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace altiplano {

namespace {

constexpr double kTiny = 1e-12;
constexpr int kLineSteps = 24;

/// Only what is forbidden stays of the edges.
ChoiceProblem without_costs(const ChoiceProblem& problem) {
  ChoiceProblem out;
  for (const auto& costs : problem.nodes) {
    out.nodes.push_back(costs);
    for (double& cost : out.nodes.back()) cost = cost == kForbidden ? kForbidden : 0;
  }
  for (const ChoiceEdge& edge : problem.edges) {
    if (std::none_of(edge.costs.begin(), edge.costs.end(), [](double c) { return c == kForbidden; })) continue;
    out.edges.push_back(edge);
    for (double& cost : out.edges.back().costs) cost = cost == kForbidden ? kForbidden : 0;
  }
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void keep_cheapest(std::optional<Sample>& kept, const Sample& sample) {
  if (sample.is_within && (!kept || sample.cost < kept->cost)) kept = sample;
}

}  // namespace

Relaxation::Relaxation(const ChoiceProblem& problem, Clock::time_point deadline, int64_t most_table_entries)
    : problem_(problem),
      uses_problem_(without_costs(problem)),
      costs_(problem_, most_table_entries),
      uses_(uses_problem_, most_table_entries),
      deadline_(deadline) {}

const Elimination::NodeCosts& Relaxation::priced(const Allowed& allowed, const std::vector<double>& prices,
                                                 double cost_weight) {
  Elimination::NodeCosts& costs = priced_;
  costs = problem_.nodes;
  for (size_t v = 0; v < costs.size(); ++v)
    for (size_t k = 0; k < costs[v].size(); ++k)
      costs[v][k] = !allowed[v][k] || costs[v][k] == kForbidden ? kForbidden : cost_weight * costs[v][k];
  for (size_t r = 0; r < prices.size(); ++r) {
    if (prices[r] == 0) continue;
    for (const LimitTerm& term : problem_.rows[r].terms) {
      std::vector<double>& of_node = costs[static_cast<size_t>(term.node)];
      for (size_t k = 0; k < of_node.size(); ++k) of_node[k] += prices[r] * term.use[k];
    }
  }
  return costs;
}

double Relaxation::limits_paid(const std::vector<double>& prices) const {
  double paid = 0;
  for (size_t r = 0; r < prices.size(); ++r) paid += prices[r] * problem_.rows[r].limit;
  return paid;
}

Sample Relaxation::sample_of(std::vector<int> choices) const {
  Sample sample;
  sample.cost = cost_of(problem_, choices);
  sample.excess = excess_of(problem_, choices);
  sample.is_within = sample.cost != kForbidden && is_within_limits(problem_, choices);
  sample.choices = std::move(choices);
  return sample;
}

Relaxation::Point Relaxation::evaluate(const Allowed& allowed, const std::vector<double>& prices) {
  auto minimum = costs_.minimise(priced(allowed, prices, 1));
  return {minimum.bound - limits_paid(prices), sample_of(std::move(minimum.choices))};
}

Relaxation::Point Relaxation::evaluate_uses(const Allowed& allowed, const std::vector<double>& weights) {
  auto minimum = uses_.minimise(priced(allowed, weights, 0));
  return {minimum.bound - limits_paid(weights), sample_of(std::move(minimum.choices))};
}

Elimination::NodeCosts Relaxation::marginals(const Allowed& allowed, const std::vector<double>& prices) {
  return marginals_of(costs_, priced(allowed, prices, 1), prices);
}

Elimination::NodeCosts Relaxation::excess_marginals(const Allowed& allowed, const std::vector<double>& weights) {
  return marginals_of(uses_, priced(allowed, weights, 0), weights);
}

Elimination::NodeCosts Relaxation::marginals_of(Elimination& elimination, const Elimination::NodeCosts& costs,
                                                const std::vector<double>& prices) const {
  elimination.minimise(costs);
  auto out = elimination.min_marginals(costs);
  const double paid = limits_paid(prices);
  for (auto& node : out)
    for (double& bound : node) bound -= paid;
  return out;
}

Relaxation::Answer Relaxation::best_bound(const Allowed& allowed, const std::vector<double>& prices, double target,
                                          int rounds) {
  Answer answer;
  const std::vector<double> nothing(problem_.rows.size(), 0);
  const Point free = evaluate(allowed, nothing);
  answer.bound = free.bound;
  answer.prices = nothing;
  keep_cheapest(answer.within, free.sample);
  if (free.bound >= target || free.sample.is_within || problem_.rows.empty() || is_late()) return answer;
  answer.breaks = free.sample;
  std::vector<double> direction = prices;
  if (problem_.rows.size() > 1) {
    ascend(allowed, prices, target, rounds, answer);
    direction = answer.prices;
  }
  if (dot(direction, direction) <= 0)
    for (size_t r = 0; r < direction.size(); ++r) direction[r] = std::max(0.0, free.sample.excess[r]);
  if (dot(direction, direction) <= 0) direction.assign(direction.size(), 1);
  if (answer.bound < target && !is_late()) search_line(allowed, direction, free, answer);
  return answer;
}

/// Polyak's step towards what is known to be reachable, halved whenever several steps bring nothing.
void Relaxation::ascend(const Allowed& allowed, std::vector<double> prices, double target, int rounds, Answer& answer) {
  double factor = 1;
  int idle = 0;
  std::vector<double> direction(prices.size(), 0);
  for (int round = 0; round < rounds && !is_late(); ++round) {
    const Point point = evaluate(allowed, prices);
    if (point.bound == kForbidden) {
      answer.bound = kForbidden;
      return;
    }
    if (point.sample.is_within) answer.others.push_back(point.sample);
    const bool better = point.bound > answer.bound + kTiny * std::abs(answer.bound);
    if (better) {
      answer.bound = point.bound;
      answer.prices = prices;
      (point.sample.is_within ? answer.within : answer.breaks) = point.sample;
    }
    if (answer.bound >= target) return;
    idle = better ? 0 : idle + 1;
    if (idle == 4) {
      factor /= 2;
      idle = 0;
      prices = answer.prices;
      direction.assign(prices.size(), 0);
      if (factor < 1e-3) return;
      continue;
    }
    for (size_t r = 0; r < prices.size(); ++r) direction[r] = 0.5 * direction[r] + point.sample.excess[r];
    double norm = 0;
    for (size_t r = 0; r < prices.size(); ++r)
      if (prices[r] > 0 || direction[r] > 0) norm += direction[r] * direction[r];
    if (norm <= kTiny) return;
    const double reachable = target == kForbidden ? answer.bound + 0.05 * std::abs(answer.bound) + kTiny : target;
    const double step = factor * std::max(reachable - point.bound, 1e-4 * std::abs(point.bound)) / norm;
    for (size_t r = 0; r < prices.size(); ++r) prices[r] = std::max(0.0, prices[r] + step * direction[r]);
  }
}

/// The best multiple of `direction`: where the line of a sample that breaks the weighted limit meets that of one that
/// keeps it, until no sample lies below the meeting point.
void Relaxation::search_line(const Allowed& allowed, const std::vector<double>& direction, const Point& start,
                             Answer& answer) {
  const Point least = evaluate_uses(allowed, direction);
  if (least.bound > kTiny * (1 + limits_paid(direction))) {
    answer.bound = kForbidden;  // even what uses least breaks the weighted sum of the rows
    return;
  }
  Sample breaks = start.sample, keeps = least.sample;
  keep_cheapest(answer.within, keeps);
  if (keeps.cost == kForbidden || dot(direction, breaks.excess) <= 0) return;
  for (int step = 0; step < kLineSteps && !is_late(); ++step) {
    const double above = dot(direction, breaks.excess), below = dot(direction, keeps.excess);
    const double multiple = (keeps.cost - breaks.cost) / (above - below);
    if (!(multiple > 0)) break;
    std::vector<double> prices = direction;
    for (double& price : prices) price *= multiple;
    Point point = evaluate(allowed, prices);
    if (point.bound > answer.bound) {
      answer.bound = point.bound;
      answer.prices = prices;
    }
    keep_cheapest(answer.within, point.sample);
    if (point.sample.is_within) answer.others.push_back(point.sample);
    const double meeting = breaks.cost + multiple * above;
    const double excess = dot(direction, point.sample.excess);
    if (point.bound >= meeting - 1e-10 * std::abs(meeting) || excess == above || excess == below) break;
    (excess > 0 ? breaks : keeps) = std::move(point.sample);
  }
  answer.breaks = std::move(breaks);
  if (!answer.within) answer.within = std::move(keeps);
}

/// Multiplicative weights (Arora, Hazan, Kale, Theory of Computing 2012): rows broken most gain weight.
Relaxation::Excess Relaxation::least_excess(const Allowed& allowed, const std::vector<double>& start, int rounds) {
  Excess best;
  std::vector<double> weights = start;
  const size_t num_rows = problem_.rows.size();
  if (weights.size() != num_rows) weights.assign(num_rows, 1.0 / static_cast<double>(num_rows));
  if (num_rows == 1) rounds = 1;
  double rate = 0.5;
  for (int round = 0; round < rounds; ++round) {
    const Point point = evaluate_uses(allowed, weights);
    if (point.bound > best.bound) {
      best.bound = point.bound;
      best.weights = weights;
    }
    if (point.bound == kForbidden) return best;
    const std::vector<double>& excess = point.sample.excess;
    const double most = *std::max_element(excess.begin(), excess.end());
    if (point.sample.cost != kForbidden && most < best.value) {
      best.value = most;
      best.choices = point.sample.choices;
    }
    if (is_late() || best.value <= best.bound) return best;
    double span = kTiny, sum = 0;
    for (double e : excess) span = std::max(span, std::abs(e));
    for (size_t r = 0; r < num_rows; ++r) sum += weights[r] *= std::exp(rate * excess[r] / span);
    for (double& weight : weights) weight /= sum;
    rate = std::max(0.02, rate * 0.97);
  }
  return best;
}

}  // namespace altiplano
