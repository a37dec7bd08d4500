#pragma once
// Seconds of one op on one device by the roofline (Williams, Waterman, Patterson, CACM 2009): the slower of arithmetic
// and memory traffic, plus what every op costs before it starts. A first estimate; measured curves come later.
#include "framework/base/units.hpp"
#include "framework/cluster/cluster.hpp"

namespace altiplano {

/// FLOP/s that large products of `dtype` reach: peak x matmul_efficiency. A type the device has no figure for runs as
/// the next wider one (bf16 as f32); f64 at half the rate of f32; integers as f32.
double reached_flops(const DeviceModel& device, DType dtype);

/// flops >= 0 and bytes (read + written) >= 0 of the *local* op. An op of no work at all (empty local box) costs
/// nothing.
Seconds compute_cost(Flops flops, Bytes bytes, DType dtype, const DeviceModel& device);

}  // namespace altiplano
