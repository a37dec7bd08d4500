#pragma once
// Times of collectives and messages between the ranks of this host.
#include "framework/api/comm.hpp"
#include "framework/cluster/curves.hpp"

namespace altiplano {

struct ExchangeTimes {
  std::vector<ExchangeCurve> curves;
  double eager_messages = 0;  ///< bytes up to which a message arrives although its sender does something else
};

/// Collective over the world, whose ranks share a host. Every kind of collective among the first two ranks and among
/// all, and messages between the first two, for tensors from 1 KiB to 16 MiB. As rank 0 sees them; of other ranks
/// nothing. Every buffer is freshly written by its owner before each call.
Result<ExchangeTimes> measure_exchanges(Communicator& communicator);

/// Waits for all ranks.
Status meet_all(Communicator& communicator, GroupId world);
Result<GroupId> group_of_first(Communicator& communicator, int ranks, const std::string& name);

}  // namespace altiplano
