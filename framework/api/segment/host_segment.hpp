#pragma once
// A segment among processes of one host: a file of shared memory that the first of them makes and the others map.
#include <string>
#include <vector>

#include "framework/api/segment/segment_transport.hpp"

namespace altiplano {

/// Collective over the world: host names by rank. What was put before it can be got after it.
Result<std::vector<std::string>> exchange_hosts(Rendezvous& rendezvous, std::chrono::milliseconds deadline);

/// Collective over the world. `sharers`: the ranks that share a segment with this one, itself among them, ascending;
/// equal on all of them. All ranks fail where one cannot make its segment. Nobody may write into it before all have
/// attached, that is, before another fence.
Result<SegmentAttachment> attach_host_segment(Rendezvous& rendezvous, const CommOptions& options,
                                              const std::vector<int>& sharers);

}  // namespace altiplano
