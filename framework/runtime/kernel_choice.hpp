#pragma once
// Which form each kernel of a job is made in: from the table of the plan or of the checkpoint it goes on from, else
// from the profile database, else measured now. Done once, before ranks run: all ranks of a job replay one table.
#include <functional>
#include <string>
#include <vector>

#include "framework/cost/kernel_database.hpp"
#include "framework/runtime/job.hpp"

namespace altiplano {

/// A kernel shape with several forms, and one request of it.
struct FormedKernel {
  KernelRequest request;
  KernelForms forms;
};
/// Of these programs, each shape once, in the order of the programs.
Result<std::vector<FormedKernel>> formed_kernels(Device& device, const std::vector<Program>& programs, uint64_t seed);

/// Runs all forms in turns, several rounds of them, and compares medians of the ratios within a round; the first form
/// is kept where no other is clearly faster, in the median and at best. Allocates the operands on `device` meanwhile.
/// Takes about 0.05 s, or a few calls where those are longer.
Result<KernelMeasurement> measure_forms(Device& device, const FormedKernel& kernel, const std::string& machine);

struct KernelSource {
  KernelTable stored = {};   ///< to replay; empty: none
  std::string stored_where;  ///< "plan.yaml:14:3: kernels", for messages
  bool from_plan = false;    ///< a person may have written it: a form that is unknown is refused
  bool measure_anew = false;
  std::string database;                               ///< path; empty: nothing is kept
  std::function<void(const std::string& text)> tell;  ///< progress; null: silent
};

struct KernelChoice {
  KernelTable table;
  std::vector<KernelMeasurement> measurements;  ///< of the job's shapes, as far as they are known
  std::vector<std::string> notices;
};

/// A stored table of this machine (processor, instruction set, library, threads) is replayed; one of another is
/// measured anew with a notice, since its forms may be slow here or missing and its bits cannot come out in any case.
/// Of a plan's table of this machine, a form that the device has not is refused.
Result<KernelChoice> choose_kernels(JobDevice& device, const std::vector<Program>& programs, uint64_t seed,
                                    const KernelSource& source);

/// Of a plan from a file, without measuring: refuses its table as choose_kernels does; notices go to the job's.
Status check_plan_kernels(Job& job);

enum class KernelStart : uint8_t {
  kFresh,   ///< nothing is gone on from
  kResume,  ///< the newest checkpoint's table is replayed, if there is one
  kAnew,    ///< everything is measured, whatever is known
};

/// For the whole job, before its ranks run: fills job.plan.kernels and tells the job's device. No table where
/// device.kernels is plain.
Result<KernelChoice> choose_job_kernels(Job& job, KernelStart start);

}  // namespace altiplano
