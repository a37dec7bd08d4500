#pragma once
// Programs made short for the simulator: runs of local work are one sum, prices and peers are looked up once.
#include "framework/cost/compute_cost.hpp"
#include "framework/simulate/simulate_programs.hpp"

namespace altiplano {

struct CompiledPart {
  enum class What : uint8_t { kWork, kWaitFor, kWaitSent, kSend, kReceive, kCall, kEnd };
  What what = What::kEnd;
  int handle = -1;      ///< kReceive, kCall: what it is waited for by; kWaitFor: which
  int exchange = -1;    ///< kWaitSent, kSend, kReceive, kCall: into CompiledProgram::exchanges
  WorkTime work = {};   ///< kWork
  double dispatch = 0;  ///< kSend, kReceive, kCall: of the host
};

struct CompiledBlock {
  std::vector<CompiledPart> parts;  ///< ends with kEnd
  int num_handles = 0;
};

/// What every run of one instruction has in common.
struct CompiledExchange {
  int label = 0;  ///< into ProgramSimulation::labels
  double seconds = 0;
  int group = 0;        ///< into ProgramSimulation::groups
  uint64_t levels = 0;  ///< whose ports it takes, as bits
  GroupId call_group;   ///< of a collective
  int peer = 0;         ///< of a message: a program
  uint64_t tag = 0;
  int num_pieces = 1;  ///< messages that come under one tag
  size_t buffer = 0;
  bool needs_sender = false;  ///< a message that moves only while sender and receiver wait for something
};

struct CompiledProgram {
  std::vector<CompiledBlock> blocks;  ///< by BlockId; empty where the step does not run it
  std::vector<CompiledExchange> exchanges;
};

/// Fills labels, groups and sent_per_level of `result`. `alike` as for simulate_programs.
std::vector<CompiledProgram> compile_programs(const std::vector<Program>& programs,
                                              const std::vector<std::vector<RankId>>& alike, const Cluster& cluster,
                                              ProgramSimulation& result);

/// Which program is at a rank's place, by rank.
std::map<int, int> program_of_ranks(const std::vector<std::vector<RankId>>& alike);

}  // namespace altiplano
