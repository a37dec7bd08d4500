#pragma once
// Texts that Slurm reads: batch scripts and srun's command line. Pure functions.
#include <string>
#include <vector>

#include "framework/api/scheduler.hpp"

namespace altiplano::slurm {

/// The options of `section` (the records `slurm.*` of the job file) as #SBATCH lines, and the lines that run the
/// command: lines end with LF only. kInvalidArgument names the value that no script can hold (line breaks).
Result<std::string> make_batch_script(const BatchRequest& request);

/// srun with its whole geometry: nothing of it is left to the variables of the job, which are those of its beginning.
Result<std::vector<std::string>> make_step_command(const StepRequest& request);

/// For a #SBATCH line: in double quotes, with a backslash before what sbatch would take for the end of the value.
std::string quoted_for_sbatch(const std::string& text);
/// For a shell, in single quotes unless it is harmless.
std::string quoted_for_shell(const std::string& text);
/// A path in which Slurm is to replace nothing: "%" is doubled.
std::string path_pattern(const std::string& path);

}  // namespace altiplano::slurm
