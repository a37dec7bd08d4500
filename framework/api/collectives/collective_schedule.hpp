#pragma once
// What one rank does for one collective: stages of messages, each followed by local copies and reductions. A pure
// function of the call and the rank's place in the group; a backend with point-to-point messages carries it out.
//
// Algorithms (n ranks): everything is direct, each rank exchanges with every other one, as ranks that share memory are
// all one hop apart. Reductions take their operands in the group's order (reduce.hpp).
//   all_reduce      small: all exchange their whole input and reduce it alone, one stage; else reduce_scatter and
//   all_gather of pieces,
//                   the gather of a piece together with the scatter of the next one
//   reduce_scatter  pieces; each rank receives the others' part of its block and reduces
//   all_gather, all_to_all   one stage of n-1 sends and receives
//   broadcast       n <= 4: the root sends to all; else a binomial tree, piece by piece
//   barrier         dissemination, ceil(log2 n) stages (Hensgen, Finkel, Manber 1988)
// Between two ranks, sends and receives of a collective are listed in the same order on both sides, so that one tag
// serves them all.
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
  std::unique_ptr<std::byte[]> scratch;  ///< bounded by n pieces
};

/// piece_bytes: of one rank's block per stage, the unit of pipelining; at least one element.
CollectiveSchedule collective_schedule(const CollectiveCall& call, int num_ranks, int index, int64_t piece_bytes);

void run_actions(const CollectiveStage& stage, DType dtype, ReduceKind reduce);

}  // namespace altiplano
