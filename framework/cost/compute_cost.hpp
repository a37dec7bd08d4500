#pragma once
// Seconds of one op on one device: by the curves of the cluster model where it has them, else by the roofline
// (Williams, Waterman, Patterson, CACM 2009): the slower of arithmetic and memory traffic. On top comes what every op
// costs before it starts.
#include "framework/base/units.hpp"
#include "framework/cluster/cluster.hpp"
#include "framework/cost/op_work.hpp"

namespace altiplano {

/// FLOP/s that large products of `dtype` reach without a curve: peak x matmul_efficiency. A type the device has no
/// figure for runs as the next wider one (bf16 as f32); f64 at half the rate of f32; integers as f32.
double reached_flops(const DeviceModel& device, DType dtype);

/// Seconds of work of a device that is alone on its node, by what slows it down when others work beside it.
struct WorkTime {
  double compute = 0, memory = 0;
  double dispatch = 0;  ///< of the host, while the device works on what came before
  WorkTime& operator+=(const WorkTime& other);
  double alone() const { return compute + memory; }
};

/// An op of no work at all (empty local box) costs nothing. An op is priced by its own kind's curve; else a matrix
/// product by the products' curves and everything by the bytes it moves, whichever takes longer.
WorkTime compute_cost(const OpWork& work, const DeviceModel& device);
/// Of a copy of as many bytes, read and written.
WorkTime copy_cost(Bytes bytes, const DeviceModel& device);

/// What the work of one op takes, at least what its host takes for it, while `devices` of the node work, itself among
/// them: by the curves of Sharing, and in turns when they are more than the processors.
Seconds time_among(const WorkTime& work, const DeviceModel& device, double devices);

}  // namespace altiplano
