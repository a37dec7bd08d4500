#include "framework/search/frontier.hpp"

#include <algorithm>

namespace altiplano {

namespace {

FrontierPoint sum(const FrontierPoint& a, const FrontierPoint& b) {
  FrontierPoint out{a.seconds + b.seconds, a.bytes + b.bytes, a.ways};
  out.ways.resize(std::max(a.ways.size(), b.ways.size()), 0);
  for (size_t i = 0; i < b.ways.size(); ++i) out.ways[i] += b.ways[i];
  return out;
}

/// No time, no bytes, whatever is asked: what sums start from.
const Frontier& nothing() {
  static const Frontier frontier = {FrontierPoint{}};
  return frontier;
}

}  // namespace

Frontier pareto(std::vector<FrontierPoint> points) {
  std::ranges::stable_sort(points, [](const FrontierPoint& a, const FrontierPoint& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.bytes < b.bytes;
  });
  Frontier out;
  for (FrontierPoint& point : points)
    if (out.empty() || point.bytes < out.back().bytes) out.push_back(std::move(point));
  return out;
}

Frontier operator+(const Frontier& a, const Frontier& b) {
  std::vector<FrontierPoint> points;
  for (const FrontierPoint& one : a)
    for (const FrontierPoint& other : b) points.push_back(sum(one, other));
  return pareto(std::move(points));
}

Frontier either(const Frontier& a, const Frontier& b) {
  std::vector<FrontierPoint> points = a;
  points.insert(points.end(), b.begin(), b.end());
  return pareto(std::move(points));
}

Frontier times(const Frontier& of_one, int parts) {
  Frontier out = nothing(), doubled = of_one;
  for (; parts > 0; parts /= 2) {
    if (parts % 2 == 1) out = out + doubled;
    if (parts > 1) doubled = doubled + doubled;
  }
  return out;
}

FrontierMatrix operator*(const FrontierMatrix& a, const FrontierMatrix& b) {
  FrontierMatrix out(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; !b.empty() && j < b[0].size(); ++j) {
      Frontier best;
      for (size_t k = 0; k < b.size(); ++k) best = either(best, a[i][k] + b[k][j]);
      out[i].push_back(std::move(best));
    }
  return out;
}

FrontierMatrix power(const FrontierMatrix& of_one, int n) {
  FrontierMatrix out(of_one.size(), std::vector<Frontier>(of_one.size())), doubled = of_one;
  for (size_t i = 0; i < out.size(); ++i) out[i][i] = nothing();
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) out = out * doubled;
    if (n > 1) doubled = doubled * doubled;
  }
  return out;
}

Frontier thinned(const Frontier& frontier, size_t most) {
  if (frontier.size() <= std::max<size_t>(most, 2)) return frontier;
  Frontier out = {frontier.front()};
  const double span = frontier.front().bytes - frontier.back().bytes;
  for (size_t i = 1; i + 1 < frontier.size(); ++i) {
    const double step = span / static_cast<double>(most - 1);
    const double wanted = frontier.front().bytes - step * static_cast<double>(out.size());
    if (frontier[i].bytes <= wanted && out.size() + 1 < most) out.push_back(frontier[i]);
  }
  out.push_back(frontier.back());
  return out;
}

const FrontierPoint* fastest_within(const Frontier& frontier, double bytes) {
  const auto found = std::ranges::find_if(frontier, [&](const FrontierPoint& point) { return point.bytes <= bytes; });
  return found == frontier.end() ? nullptr : &*found;
}

}  // namespace altiplano
