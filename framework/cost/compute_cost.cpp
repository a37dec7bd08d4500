#include "framework/cost/compute_cost.hpp"

#include <algorithm>

namespace altiplano {

static double peak_flops(const DeviceModel& device, DType dtype) {
  auto exact = device.peak_flops.find(dtype);
  if (exact != device.peak_flops.end()) return exact->second;
  auto f32 = device.peak_flops.find(DType::kF32);
  ALTIPLANO_ASSERT(f32 != device.peak_flops.end(), "device {} without an f32 figure", device.name);
  return dtype == DType::kF64 ? f32->second / 2 : f32->second;
}

double reached_flops(const DeviceModel& device, DType dtype) {
  return peak_flops(device, dtype) * device.matmul_efficiency;
}

Seconds compute_cost(Flops flops, Bytes bytes, DType dtype, const DeviceModel& device) {
  ALTIPLANO_ASSERT(flops.value >= 0 && bytes.value >= 0, "an op of {} flops and {} bytes", flops.value, bytes.value);
  if (flops.value == 0 && bytes.value == 0) return Seconds(0);
  double arithmetic = flops.value / reached_flops(device, dtype);
  double traffic = static_cast<double>(bytes.value) / device.memory_bandwidth;
  return Seconds(device.op_overhead + std::max(arithmetic, traffic));
}

}  // namespace altiplano
