#include "framework/cost/curve.hpp"

#include <algorithm>
#include <cmath>

namespace altiplano {

namespace {

/// On the line between (x0, y0) and (x1, y1) in logarithms.
double between(double x0, double y0, double x1, double y1, double x) {
  const double part = std::log(x / x0) / std::log(x1 / x0);
  return y0 * std::pow(y1 / y0, part);
}

/// The first point of at least `size`, which lies within the curve and not before its first point.
Curve::const_iterator point_at_or_after(const Curve& curve, double size) {
  return std::ranges::lower_bound(curve, size, {}, &CurvePoint::size);
}

}  // namespace

double seconds_by_rate(const Curve& rates, double amount) {
  if (amount <= 0) return 0;
  if (amount <= rates.front().size) return amount / rates.front().value;
  if (amount >= rates.back().size) return amount / rates.back().value;
  const auto after = point_at_or_after(rates, amount), before = after - 1;
  return between(before->size, before->size / before->value, after->size, after->size / after->value, amount);
}

double seconds_by_time(const Curve& times, double size) {
  if (size <= times.front().size) return times.front().value;
  if (size >= times.back().size) return times.back().value * size / times.back().size;
  const auto after = point_at_or_after(times, size), before = after - 1;
  return between(before->size, before->value, after->size, after->value, size);
}

std::optional<double> seconds_of_product(const std::vector<ProductCurve>& curves, DType type, double flops,
                                         int64_t smallest_dim) {
  const ProductCurve *below = nullptr, *above = nullptr;  // the nearest of at most, and of more than, its smallest dim
  for (const ProductCurve& curve : curves) {
    if (curve.type != type) continue;
    if (curve.smallest_dim <= smallest_dim && (!below || curve.smallest_dim > below->smallest_dim)) below = &curve;
    if (curve.smallest_dim > smallest_dim && (!above || curve.smallest_dim < above->smallest_dim)) above = &curve;
  }
  if (!below && !above) return std::nullopt;
  if (!below || !above) return seconds_by_rate((below ? below : above)->points, flops);
  const double slow = seconds_by_rate(below->points, flops), fast = seconds_by_rate(above->points, flops);
  if (below->smallest_dim == 0 || flops <= 0) return slow;
  return between(static_cast<double>(below->smallest_dim), slow, static_cast<double>(above->smallest_dim), fast,
                 static_cast<double>(smallest_dim));
}

double slowdown(const Curve& factors, double devices) {
  if (factors.empty() || devices <= 1) return 1;
  CurvePoint before{1, 1};
  auto after = factors.begin();
  for (; after + 1 != factors.end() && after->size < devices; ++after) before = *after;
  return before.value + (after->value - before.value) * (devices - before.size) / (after->size - before.size);
}

}  // namespace altiplano
