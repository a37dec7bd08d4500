#include "framework/cluster/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace altiplano {

namespace {

/// Sizes rise, values are above 0, and `seconds` of a point are never less than of the one before it.
template <typename Seconds>
Status verify_points(const Curve& curve, const std::string& key, Seconds seconds) {
  if (curve.empty()) return invalid_argument("{}: none; a curve has at least one point [size, value]", key);
  for (size_t i = 0; i < curve.size(); ++i) {
    const CurvePoint& point = curve[i];
    if (!(point.size > 0 && point.value > 0 && std::isfinite(point.size) && std::isfinite(point.value)))
      return invalid_argument("{}: point {} is [{:g}, {:g}]; sizes and values must be above 0", key, i, point.size,
                              point.value);
    if (i == 0) continue;
    const CurvePoint& before = curve[i - 1];
    if (!(point.size > before.size))
      return invalid_argument("{}: the size {:g} of point {} follows {:g}; sizes must rise", key, point.size, i,
                              before.size);
    if (seconds(point) < seconds(before) * (1 - 1e-9))
      return invalid_argument("{}: size {:g} takes {:g} s and {:g} takes {:g} s; more must not take less", key,
                              before.size, seconds(before), point.size, seconds(point));
  }
  return Status::ok();
}

double seconds_of_rate(const CurvePoint& point) {
  return point.size / point.value;
}
double seconds_of_time(const CurvePoint& point) {
  return point.value;
}

Status verify_sharing(const Curve& curve, const std::string& key) {
  if (curve.empty()) return Status::ok();
  ALTIPLANO_RETURN_IF_ERROR(verify_points(curve, key, seconds_of_time));
  if (curve.front().size <= 1 || curve.front().value < 1)
    return invalid_argument(
        "{}: {:g} devices take {:g} times as long; points are of more than one device, which takes 1, and factors at "
        "least 1",
        key, curve.front().size, curve.front().value);
  return Status::ok();
}

}  // namespace

Status verify_curves(const DeviceCurves& curves) {
  const std::string key = "device.curves";
  std::set<std::pair<DType, int64_t>> products;
  for (size_t i = 0; i < curves.products.size(); ++i) {
    const ProductCurve& curve = curves.products[i];
    const std::string of_curve = fmt::format("{}.products[{}]", key, i);
    ALTIPLANO_RETURN_IF_ERROR(verify_points(curve.points, of_curve + ".points", seconds_of_rate));
    if (curve.smallest_dim < 0)
      return invalid_argument("{}.smallest_dim: {}; must be at least 1", of_curve, curve.smallest_dim);
    if (!products.emplace(curve.type, curve.smallest_dim).second)
      return invalid_argument("{}.type: {} with smallest_dim {} stands twice", of_curve, to_string(curve.type),
                              curve.smallest_dim);
  }
  if (!curves.memory.empty()) ALTIPLANO_RETURN_IF_ERROR(verify_points(curves.memory, key + ".memory", seconds_of_rate));
  std::set<std::pair<std::string, DType>> ops;
  for (size_t i = 0; i < curves.ops.size(); ++i) {
    const OpCurve& curve = curves.ops[i];
    const std::string of_curve = fmt::format("{}.ops[{}]", key, i);
    ALTIPLANO_RETURN_IF_ERROR(verify_points(curve.points, of_curve + ".points", seconds_of_rate));
    if (!(curve.inner_passes >= 0 && std::isfinite(curve.inner_passes)))
      return invalid_argument("{}.inner_passes: {}; must not be negative", of_curve, curve.inner_passes);
    if (!ops.emplace(curve.kind, curve.type).second)
      return invalid_argument("{}.kind: {} of {} stands twice", of_curve, curve.kind, to_string(curve.type));
  }
  if (curves.alignment.multiple_of < 0)
    return invalid_argument("{}.alignment.multiple_of: {}; must not be negative (0: any size will do)", key,
                            curves.alignment.multiple_of);
  if (!(curves.alignment.times_longer >= 1 && std::isfinite(curves.alignment.times_longer)))
    return invalid_argument("{}.alignment.times_longer: {}; must be at least 1", key, curves.alignment.times_longer);
  if (curves.sharing.processors < 0)
    return invalid_argument("{}.sharing.processors: {}; must not be negative (0: each device has its own)", key,
                            curves.sharing.processors);
  ALTIPLANO_RETURN_IF_ERROR(verify_sharing(curves.sharing.compute, key + ".sharing.compute"));
  return verify_sharing(curves.sharing.memory, key + ".sharing.memory");
}

Status verify_curves(const LevelCurves& curves, const std::string& key) {
  if (!curves.bandwidth.empty())
    ALTIPLANO_RETURN_IF_ERROR(verify_points(curves.bandwidth, key + ".bandwidth", seconds_of_rate));
  std::set<std::pair<int, int>> known;
  for (size_t i = 0; i < curves.measured.size(); ++i) {
    const ExchangeCurve& curve = curves.measured[i];
    const std::string of_curve = fmt::format("{}.measured[{}]", key, i);
    ALTIPLANO_RETURN_IF_ERROR(verify_points(curve.points, of_curve + ".points", seconds_of_time));
    if (curve.ranks < 2 || (!curve.kind && curve.ranks != 2))
      return invalid_argument("{}.ranks: {}; must be at least 2, and 2 for a message", of_curve, curve.ranks);
    if (!known.emplace(curve.kind ? static_cast<int>(*curve.kind) : -1, curve.ranks).second)
      return invalid_argument("{}.kind: {} of {} ranks stands twice", of_curve,
                              curve.kind ? to_string(*curve.kind) : "message", curve.ranks);
  }
  return Status::ok();
}

}  // namespace altiplano
