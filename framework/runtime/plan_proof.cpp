#include "framework/runtime/plan_proof.hpp"

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/runtime/job_plan.hpp"

namespace altiplano {

namespace {

/// The stage's first rank has decided what fits; others may hold a little more of what crosses stages.
Status check_every_kind_fits(const Job& job, const std::vector<Program>& programs) {
  ALTIPLANO_ASSIGN(const Bytes limit, memory_limit(job.config.options, job.cluster, job.ranks_of_a_host));
  for (const Program& program : programs)
    if (program.peak() > limit)
      return infeasible(
          "stage {}: rank {} needs {}, has {}; the plan was chosen by the stage's first rank, which needs {}. Plan "
          "with "
          "memory.per_rank lower by {}",
          job.plan.stages[program.stage.index()].name, program.rank, to_string(program.peak()), to_string(limit),
          to_string(job.plan.predicted.peak_memory[program.stage.index()]), to_string(program.peak() - limit));
  return Status::ok();
}

}  // namespace

std::string PlanProof::in_words() const {
  const std::string programs = counted(num_programs, "program");
  const std::string proved = "proved free of deadlock, of overlap and of reads before writes";
  if (is_whole()) return fmt::format("{} {}", programs, proved);
  return fmt::format("{}, one of every kind among {} ranks, {}; starting the job proves every rank's", programs,
                     with_thousands(num_ranks), proved);
}

Result<PlanProof> prove_plan(const Job& job) {
  if (static_cast<int>(job.programs.size()) == job.num_ranks) {
    ALTIPLANO_RETURN_IF_ERROR(verify_programs(job.programs));
    return PlanProof{job.num_ranks, job.num_ranks};
  }
  ALTIPLANO_ASSIGN(const Representatives kinds,
                   lower_representatives(*job.graph, job.plan, job.timetable, Binding::identity(job.plan.num_slots()),
                                         job.device->lowering()));
  ALTIPLANO_RETURN_IF_ERROR(check_every_kind_fits(job, kinds.programs));
  ALTIPLANO_RETURN_IF_ERROR(verify_representatives(kinds.programs));
  return PlanProof{static_cast<int>(kinds.programs.size()), job.num_ranks};
}

}  // namespace altiplano
