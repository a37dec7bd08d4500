#pragma once
// What one rank does for one collective: stages of messages, each followed by local copies and reductions. A pure
// function of the call, the group's shape and the algorithm; a backend with point-to-point messages carries it out.
// Which algorithm when: algorithm_choice.hpp.
//
// direct (n ranks): each rank exchanges with every other one. Sums take their operands in the group's order
// (reduce.hpp), so that they have the bits of ranks that share memory.
//   all_reduce      small: all exchange their whole input and reduce it alone, one stage; else reduce_scatter and
//                   all_gather of pieces, the gather of a piece together with the scatter of the next one
//   reduce_scatter  pieces; each rank receives the others' part of its block and reduces
//   all_gather, all_to_all   one stage of n-1 sends and receives
// ring: every rank sends to its successor only, n-1 steps; block b is summed from rank b+1 on around the ring.
//   all_reduce      reduce_scatter and all_gather around the ring, in rounds of n pieces
// recursive: partners at distances 1, 2, 4, ...; ranks beyond the largest power of two hand their data to a partner
// first and get the result last. Pairs are summed lower rank first, so that all have the same bits.
//   all_reduce      small: doubling, whole vectors, ceil(log2 n) stages; else halving and doubling (Rabenseifner 2004)
// two_level: what ranks of one host sum or share among themselves travels between hosts once. Sums are taken within
// each host in the group's order, then over the hosts in theirs.
//   all_reduce      reduce_scatter inside over as many owners as the smallest host has ranks, direct all_reduce of each
//                   part between its owners, all_gather inside; pieces, all four steps of different pieces at a time
//   reduce_scatter  inside to the owner of each block, partial sums to their rank
//   all_gather      to one rank of each host, which shares it inside
//   broadcast       a tree of hosts, in which the first to receive shares it inside
// broadcast       n <= 4: the root sends to all; else a binomial tree, piece by piece
// barrier         dissemination, ceil(log2 n) stages (Hensgen, Finkel, Manber 1988)
//
// Between two ranks, sends and receives of a stage are listed in the same order on both sides, so that one tag serves
// them all.
#include <cstddef>
#include <memory>
#include <vector>

#include "framework/api/comm.hpp"

namespace altiplano {

struct CollectiveMessage {
  int peer = 0;  ///< index in the group
  bool is_send = false;
  std::byte* data = nullptr;
  int64_t bytes = 0;
};

/// A copy (one source) or a reduction of count elements.
struct CollectiveAction {
  std::byte* out = nullptr;
  std::vector<const std::byte*> sources;
  int64_t count = 0;
};

/// All messages are issued together; the actions follow once all of them are done.
struct CollectiveStage {
  std::vector<CollectiveMessage> messages;
  std::vector<CollectiveAction> actions;
};

struct CollectiveSchedule {
  std::vector<CollectiveStage> stages;
  std::unique_ptr<std::byte[]> scratch;  ///< bounded by 2 n pieces, but for all_reduce by doubling: the message
};

/// A group as one of its members sees it.
struct GroupPlace {
  int num_ranks = 1;
  int index = 0;             ///< of this rank
  std::vector<int> host_of;  ///< by member: a number of its host, in the order of their first members; empty: one host
};

/// piece_bytes: of one rank's block per stage, the unit of pipelining; at least one element. `wanted`: see
/// choose_algorithm.
CollectiveSchedule collective_schedule(const CollectiveCall& call, const GroupPlace& group, int64_t piece_bytes,
                                       MessageAlgorithm wanted, bool two_level);

void run_actions(const CollectiveStage& stage, DType dtype, ReduceKind reduce);

}  // namespace altiplano
