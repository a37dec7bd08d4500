#pragma once
// Proving a plan before anybody runs it.
#include <string>

#include "framework/runtime/job.hpp"

namespace altiplano {

/// How a plan was proved (verify_programs, verify_representatives).
struct PlanProof {
  int num_programs = 0;  ///< that were lowered and rehearsed together
  int num_ranks = 0;     ///< of the job
  bool is_whole() const { return num_programs == num_ranks; }
  /// "12 programs, which stand for 3,072 ranks, proved ..."
  std::string in_words() const;
};

/// Proves job.programs; where those are of the first rank of every stage only (JobRequest::only_first_of_stage), one
/// program of every kind of rank is lowered and proved instead. kInvalidArgument: what is wrong. kInfeasible: a rank
/// that is not its stage's first needs more memory than it has.
Result<PlanProof> prove_plan(const Job& job);

}  // namespace altiplano
