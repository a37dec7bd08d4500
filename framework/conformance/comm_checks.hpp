#pragma once
// The comm suite in parts: collectives against values computed alone, messages in adverse orders, failures that name
// who and what. Each part runs with ranks as threads, as processes, or both, as the backend's capability bits promise.
#include <span>
#include <vector>

#include "framework/conformance/check.hpp"
#include "framework/conformance/ranks.hpp"

namespace altiplano::conformance {

std::vector<Check> comm_collective_checks();
std::vector<Check> comm_message_checks();
std::vector<Check> comm_failure_checks();

/// Waits long, for what must end by itself.
CommOptions patient_options();
/// Waits `milliseconds`, for what must end at the deadline.
CommOptions deadline_options(int milliseconds);

/// What the capability bits promise: threads, processes, or both; with launched ranks, hosts too.
std::vector<RanksAre> worlds_of(const CommBackend& backend);
/// A check that runs once per world; its finding lists them.
Check comm_check(std::string name, Status (*body)(CommBackend&, RanksAre));
/// Runs ranks and returns the first failure.
Status run_on(int ranks, CommBackend& backend, RanksAre ranks_are, const CommOptions& options,
              const CommunicatorFunction& function);
Result<GroupId> world_group(Communicator& comm, const std::string& name);

/// Of collectives: plain memory, the communicator's (allocate_registered) where it has such, or that on all ranks but
/// 0.
enum class Buffers : uint8_t { kPlain, kRegistered, kMixed };

/// Every collective of every type with these counts on `ranks` ranks. `exact`: sums of floating types have the bits of
/// reduce_in_order; otherwise its value within rounding.
Status check_collectives(CommBackend& backend, RanksAre ranks_are, int ranks, const CommOptions& options,
                         std::span<const int64_t> counts, Buffers buffers, bool exact);

}  // namespace altiplano::conformance
