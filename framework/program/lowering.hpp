#pragma once
// Lowering: Plan + TrainingGraph + Timetable + Binding -> Program per rank. Pure: every rank can compute every other
// rank's Program, so that the verifier sees them all and no rank negotiates anything.
//
// The way: assign_shardings (plan/) says how every op runs and every value lies; LoweringContext derives what crosses
// stages; RankLowering writes the blocks F, B, U, V, G of one rank; BlockBuilder::finish gives work buffers their
// offsets.
#include <functional>

#include "framework/plan/assignment.hpp"
#include "framework/program/program.hpp"

namespace altiplano {

struct LoweringOptions {
  /// Scratch bytes of a compute instruction on the device that will run it; null: none.
  std::function<Result<int64_t>(const Program& program, const ComputeInstruction& instruction)> workspace;
  SharedFacts facts;  ///< of the graph; null: found anew
  /// Only the first rank of every stage, in order of stages: for estimates, which the other ranks change little.
  bool only_first_of_stage = false;
  bool fetch_logits = false;  ///< V blocks end with the logits on the host (generation)
  /// Gradients are reduced in buckets of about this many bytes.
  int64_t bucket_bytes = int64_t{32} << 20;
};

/// All ranks' programs, by rank. The plan must be verified; the timetable must have one chunk per stage and worker =
/// stage.
Result<std::vector<Program>> lower(const TrainingGraph& graph, const Plan& plan, const Timetable& timetable,
                                   const Binding& binding, const LoweringOptions& options = {});

/// One program of every kind of rank, with the ranks that it speaks for, its own first: their programs differ in peers
/// and in the places of their pieces only (program/rank_kinds.hpp).
struct Representatives {
  std::vector<Program> programs;
  std::vector<std::vector<RankId>> alike;
};
Result<Representatives> lower_representatives(const TrainingGraph& graph, const Plan& plan, const Timetable& timetable,
                                              const Binding& binding, const LoweringOptions& options = {});

/// The program of one rank, the same as lower() makes.
Result<Program> lower_rank(const TrainingGraph& graph, const Plan& plan, const Timetable& timetable,
                           const Binding& binding, RankId rank, const LoweringOptions& options = {});

}  // namespace altiplano
