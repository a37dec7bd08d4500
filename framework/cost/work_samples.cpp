#include "framework/cost/work_samples.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "framework/base/status.hpp"
#include "framework/base/text.hpp"

namespace altiplano {

namespace {

/// FLOPs per byte from which on arithmetic decides how long an op takes, on any device of today.
constexpr double kArithmetic = 8;
/// Products of about one smallest dimension share a curve: a factor of 4.
constexpr int kBitsPerDimClass = 2;
constexpr double kProductBin = 2.5, kOpBin = 1.8;

struct FittedPoint {
  double weight = 0, size = 0, seconds = 0;  ///< means
};

void merge(FittedPoint& into, const FittedPoint& other) {
  const double weight = into.weight + other.weight;
  into.size = (into.size * into.weight + other.size * other.weight) / weight;
  into.seconds = (into.seconds * into.weight + other.seconds * other.weight) / weight;
  into.weight = weight;
}

/// In order of size; adjacent points that fall are pooled until none does.
std::vector<FittedPoint> pooled(const std::vector<FittedPoint>& points) {
  std::vector<FittedPoint> out;
  for (const FittedPoint& point : points) {
    out.push_back(point);
    while (out.size() > 1 && (out.back().seconds <= out[out.size() - 2].seconds)) {
      const FittedPoint last = out.back();
      out.pop_back();
      merge(out.back(), last);
    }
  }
  return out;
}

/// Four digits: more than any measurement has, and short to read.
double rounded(double value) {
  return parse_double(fmt::format("{:.4g}", value)).value_or(value);
}

bool goes_by_flops(const WorkSample& sample) {
  return sample.flops >= kArithmetic * sample.bytes;
}

/// Samples of one curve.
struct Group {
  std::vector<std::pair<double, double>> points;
  std::vector<double> weights;
  void add(double size, const WorkSample& sample) {
    points.emplace_back(size, sample.seconds);
    weights.push_back(sample.calls);
  }
};

int dim_class(int64_t smallest_dim) {
  return std::bit_width(static_cast<uint64_t>(smallest_dim)) / kBitsPerDimClass;
}

std::vector<ProductCurve> fit_products(const std::vector<WorkSample>& samples) {
  struct OfClass {
    Group group;
    double calls = 0, log_dims = 0;
  };
  std::map<std::pair<DType, int>, OfClass> classes;
  for (const WorkSample& sample : samples) {
    if (!sample.is_product() || sample.flops <= 0) continue;
    OfClass& of = classes[{sample.type, dim_class(sample.smallest_dim)}];
    of.group.add(sample.flops, sample);
    of.calls += sample.calls;
    of.log_dims += sample.calls * std::log(static_cast<double>(sample.smallest_dim));
  }
  std::vector<ProductCurve> curves;
  for (auto& [key, of] : classes) {
    const auto dim = static_cast<int64_t>(std::lround(std::exp(of.log_dims / of.calls)));
    curves.push_back({key.first, dim, fit_rates(std::move(of.group.points), std::move(of.group.weights), kProductBin)});
  }
  return curves;
}

std::vector<OpCurve> fit_ops(const std::vector<WorkSample>& samples) {
  std::map<std::pair<std::string, DType>, std::vector<const WorkSample*>> kinds;
  for (const WorkSample& sample : samples)
    if (!sample.is_product() && sample.kind != "copy" && sample.bytes > 0)
      kinds[{sample.kind, sample.type}].push_back(&sample);
  std::vector<OpCurve> curves;
  for (const auto& [key, of_kind] : kinds) {
    const WorkSample& largest = **std::ranges::max_element(of_kind, {}, [](const WorkSample* s) { return s->bytes; });
    OpCurve curve{key.first, key.second, goes_by_flops(largest), {}};
    Group group;
    for (const WorkSample* sample : of_kind)
      if (const double size = curve.by_flops ? sample->flops : sample->bytes; size > 0) group.add(size, *sample);
    curve.points = fit_rates(std::move(group.points), std::move(group.weights), kOpBin);
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace

Curve fit_rates(std::vector<std::pair<double, double>> sizes_and_seconds, std::vector<double> weights, double bin) {
  ALTIPLANO_ASSERT(sizes_and_seconds.size() == weights.size(), "{} points of {} weights", sizes_and_seconds.size(),
                   weights.size());
  std::vector<FittedPoint> samples;
  for (size_t i = 0; i < weights.size(); ++i)
    samples.push_back({weights[i], sizes_and_seconds[i].first, std::max(1e-9, sizes_and_seconds[i].second)});
  std::ranges::sort(samples, {}, &FittedPoint::size);
  std::vector<FittedPoint> bins;
  double first = 0;
  for (const FittedPoint& sample : samples) {
    if (bins.empty() || sample.size > first * bin) {
      bins.push_back(sample);
      first = sample.size;
    } else {
      merge(bins.back(), sample);
    }
  }
  Curve curve;
  double before = 0;  // seconds of the point before
  for (const FittedPoint& point : pooled(bins)) {
    const double size = rounded(point.size);
    double rate = rounded(size / point.seconds);
    if (size / rate < before) rate = size / before;  // rounding must not make more take less
    before = size / rate;
    curve.push_back({size, rate});
  }
  return curve;
}

Curve fit_times(const std::vector<std::pair<double, double>>& sizes_and_seconds) {
  std::vector<FittedPoint> points;
  for (const auto& [size, seconds] : sizes_and_seconds) points.push_back({1, size, std::max(1e-9, seconds)});
  std::ranges::sort(points, {}, &FittedPoint::size);
  Curve curve;
  for (const FittedPoint& point : pooled(points)) curve.push_back({point.size, rounded(point.seconds)});
  return curve;
}

DeviceCurves fit_curves(const std::vector<WorkSample>& samples) {
  DeviceCurves curves;
  curves.products = fit_products(samples);
  curves.ops = fit_ops(samples);
  Group copies;
  for (const WorkSample& sample : samples)
    if (sample.kind == "copy" && sample.bytes > 0) copies.add(sample.bytes, sample);
  curves.memory = fit_rates(std::move(copies.points), std::move(copies.weights), kOpBin);
  return curves;
}

SlowdownFit fit_slowdown(const std::vector<WorkSample>& alone, const std::vector<WorkSample>& together) {
  ALTIPLANO_ASSERT(alone.size() == together.size(), "{} samples alone, {} together", alone.size(), together.size());
  double before[2] = {}, after[2] = {};
  for (size_t i = 0; i < alone.size(); ++i) {
    const int by_bytes = alone[i].is_product() || goes_by_flops(alone[i]) ? 0 : 1;
    before[by_bytes] += alone[i].calls * alone[i].seconds;
    after[by_bytes] += together[i].calls * together[i].seconds;
  }
  const auto ratio = [&](int i) { return before[i] > 0 ? std::max(1.0, after[i] / before[i]) : 1.0; };
  return {rounded(ratio(0)), rounded(ratio(1))};
}

}  // namespace altiplano
