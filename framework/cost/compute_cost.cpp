#include "framework/cost/compute_cost.hpp"

#include <algorithm>

#include "framework/cost/curve.hpp"

namespace altiplano {

namespace {

/// The type whose figures stand for those of `dtype`, where it has none itself.
DType wider(DType dtype) {
  return dtype == DType::kF64 ? dtype : DType::kF32;
}

double peak_flops(const DeviceModel& device, DType dtype) {
  const auto exact = device.peak_flops.find(dtype);
  if (exact != device.peak_flops.end()) return exact->second;
  const auto f32 = device.peak_flops.find(DType::kF32);
  ALTIPLANO_ASSERT(f32 != device.peak_flops.end(), "device {} without an f32 figure", device.name);
  return dtype == DType::kF64 ? f32->second / 2 : f32->second;
}

/// How many times longer a product takes for dims that do not fit the device's units.
double misfit(const OpWork& work, const DeviceModel& device) {
  if (!device.curves || work.alignment == 0) return 1;
  const Alignment& alignment = device.curves->alignment;
  return alignment.multiple_of > 0 && work.alignment % alignment.multiple_of != 0 ? alignment.times_longer : 1;
}

double product_seconds(const OpWork& work, const DeviceModel& device) {
  if (device.curves && work.smallest_dim > 0) {
    const bool has_figure = device.peak_flops.contains(work.dtype);
    for (DType type : {work.dtype, has_figure ? work.dtype : wider(work.dtype)})
      if (const auto seconds = seconds_of_product(device.curves->products, type, work.flops.value, work.smallest_dim))
        return *seconds * misfit(work, device);
  }
  return work.flops.value / reached_flops(device, work.dtype);
}

double traffic_seconds(double bytes, const DeviceModel& device) {
  if (device.curves && !device.curves->memory.empty()) return seconds_by_rate(device.curves->memory, bytes);
  return bytes / device.memory_bandwidth;
}

const OpCurve* curve_of(const OpWork& work, const DeviceModel& device) {
  if (!device.curves) return nullptr;
  const auto found = std::ranges::find_if(
      device.curves->ops, [&](const OpCurve& curve) { return curve.kind == work.kind && curve.type == work.dtype; });
  return found == device.curves->ops.end() ? nullptr : &*found;
}

double times_longer(const Curve& factors, int processors, double devices) {
  if (processors <= 0 || devices <= processors) return slowdown(factors, devices);
  return slowdown(factors, processors) * devices / processors;
}

}  // namespace

WorkTime& WorkTime::operator+=(const WorkTime& other) {
  compute += other.compute;
  memory += other.memory;
  dispatch += other.dispatch;
  return *this;
}

double reached_flops(const DeviceModel& device, DType dtype) {
  return peak_flops(device, dtype) * device.matmul_efficiency;
}

WorkTime compute_cost(const OpWork& work, const DeviceModel& device) {
  const double flops = work.flops.value, bytes = static_cast<double>(work.bytes.value);
  ALTIPLANO_ASSERT(flops >= 0 && bytes >= 0, "an op of {} flops and {} bytes", flops, bytes);
  if (flops == 0 && bytes == 0) return {};
  WorkTime time;
  time.dispatch = device.dispatch;
  if (const OpCurve* curve = curve_of(work, device)) {
    const double seconds = seconds_by_rate(curve->points, curve->by_flops ? flops : bytes);
    (curve->by_flops ? time.compute : time.memory) = seconds;
    if (curve->inner_passes > 0)
      time.memory += curve->inner_passes * traffic_seconds(static_cast<double>(work.inner_bytes.value), device);
  } else {
    const double arithmetic = product_seconds(work, device), traffic = traffic_seconds(bytes, device);
    (arithmetic >= traffic ? time.compute : time.memory) = arithmetic >= traffic ? arithmetic : traffic;
  }
  time.compute += device.op_overhead;
  return time;
}

WorkTime copy_cost(Bytes bytes, const DeviceModel& device) {
  OpWork work;
  work.kind = "copy";
  work.bytes = bytes;
  return compute_cost(work, device);
}

Seconds time_among(const WorkTime& work, const DeviceModel& device, double devices) {
  if (!device.curves) return Seconds(std::max(work.alone(), work.dispatch));
  const Sharing& sharing = device.curves->sharing;
  const double seconds = work.compute * times_longer(sharing.compute, sharing.processors, devices) +
                         work.memory * times_longer(sharing.memory, sharing.processors, devices);
  return Seconds(std::max(seconds, work.dispatch));
}

}  // namespace altiplano
