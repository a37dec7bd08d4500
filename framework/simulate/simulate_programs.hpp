#pragma once
// Discrete events over the programs of all ranks: what a step takes when everything that happens side by side is let
// happen side by side. Pure, no clock. Prices are those of framework/simulate/program_prices.hpp.
//
// A rank runs its blocks in the order of its step, as the executor does: computing and copying hold it up; a collective
// or a receive is started and goes on beside it until an instruction names it in `after`, or the block ends; a send
// goes on until its buffer is written again.
//   - A collective starts when all members have come to it, each member's collective stream is free (in order) and so
//     are the ports it takes; all members leave it together.
//   - A message starts when its sender has come to it and the ports are free, whether or not the receiver has; the
//     receiver has it when it has asked for it and the message is there.
// Contention: a device has one port per level of the cluster and direction. A message takes its sender's port out and
// its receiver's port in at the level that connects them, a collective both ports of every member at the levels it
// spans, for as long as it lasts; what comes later to a port that is taken waits. Levels that devices share
// (oversubscription) are priced as if all of them sent, so nothing else is shared.
//
// Ranks that behave alike are simulated once: a program stands for several ranks (`alike`), its groups and peers for
// those of each of them, and what it does with others is priced for the slowest of them. What such a program gets from
// ranks like another program is there when that one has sent all it sends of the tensor; what none but ranks that are
// not simulated would send is not waited for.
// O(events x log programs); a run of local work is one event.
#include <string>
#include <vector>

#include "framework/cluster/cluster.hpp"
#include "framework/program/program.hpp"
#include "framework/simulate/jitter.hpp"

namespace altiplano {

/// What ranks do together, once.
struct Exchange {
  bool is_message = false;
  int label = 0;         ///< into ProgramSimulation::labels: the instruction of whoever came last
  int group = 0;         ///< into ProgramSimulation::groups; of a message: {sender, receiver}
  Action action;         ///< in which that instruction stands
  Seconds came;          ///< when the last one came
  Seconds begin, end;    ///< on the wire
  int last_program = 0;  ///< who came last
  int held_up_by = -1;   ///< the exchange that held a port or the stream until `begin`; -1: none, it began when the
                         ///< last one came
};

struct TimedAction {
  Action action;
  Seconds begin, end;
};
/// A time in which a rank could not go on.
struct Wait {
  Seconds begin, end;
  int exchange = 0;
};

/// Of a program, for each of the ranks it stands for.
struct RankTimeline {
  RankId rank;
  StageId stage;
  int num_alike = 1;
  Seconds busy;     ///< computing and copying
  Seconds exposed;  ///< waiting for what all had come to: on the wire, or for a port
  Seconds bubble;   ///< waiting for others to come, or done while others are not
  Bytes peak;
  std::vector<TimedAction> actions;
  std::vector<Wait> waits;
};

struct ProgramSimulation {
  Seconds step;
  std::vector<RankTimeline> ranks;  ///< one per program
  std::vector<Exchange> exchanges;
  std::vector<std::string> labels;
  std::vector<std::vector<int>> groups;  ///< of programs
  std::vector<double> sent_per_level;    ///< bytes in a step, of all ranks, by level of the cluster
};

/// `alike[p]`: the ranks that program p stands for, itself first; positions in the cluster are their numbers. Programs
/// must be verified; those that wait for each other for ever are refused (kInvalidArgument).
Result<ProgramSimulation> simulate_programs(const std::vector<Program>& programs,
                                            const std::vector<std::vector<RankId>>& alike, const Cluster& cluster,
                                            const Jitter& jitter = {});

/// Whether the programs say all there is to say about the ranks they stand for: their messages go to and come from each
/// other, and from such as stand for equally many.
bool stand_for_all(const std::vector<Program>& programs, const std::vector<std::vector<RankId>>& alike);

}  // namespace altiplano
