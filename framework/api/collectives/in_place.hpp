#pragma once
// Collectives among ranks that reach each other's buffers: nothing is sent, each rank does its part where the data
// lies. A pure function of the call, the rank's place in the group and all members' buffers; reductions take their
// operands in the group's order (reduce.hpp).
//
//   all_reduce       rank r reduces the r-th part of all inputs and writes it to all outputs
//   all others       each rank takes what its own output needs from the others' inputs
#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/api/comm.hpp"

namespace altiplano {

/// Bytes a member brings: for a broadcast the root's out, for a barrier nothing.
int64_t bytes_in(const CollectiveCall& call, int num_ranks, int member);
int64_t bytes_out(const CollectiveCall& call, int num_ranks);
/// Where this member's bytes_in lie.
const void* data_in(const CollectiveCall& call);

/// This rank's whole result from all members' inputs, into call.out; other members' outputs are not touched.
void run_alone(const CollectiveCall& call, int index, std::span<const std::byte* const> in);

/// This rank's part. When every member has done its part, every output is complete; until then inputs must stay.
void run_part(const CollectiveCall& call, int index, std::span<const std::byte* const> in,
              std::span<std::byte* const> out);

}  // namespace altiplano
