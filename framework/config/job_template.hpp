#pragma once
// What `altiplano init` writes: a job file in which every key stands with its meaning, and a script that runs it, under
// Slurm and without.
#include <string>
#include <utility>
#include <vector>

#include "framework/options/option.hpp"

namespace altiplano {

/// Key and text of its value, as it stands in the file.
using ChosenValues = std::vector<std::pair<std::string, std::string>>;

/// A job file: the chosen keys as they are, every other key as a comment with its default; above each what it means.
/// `records`: those of the job with the model's inserted. `head`: lines of the comment at the top.
std::string commented_job(const std::vector<OptionRecord>& records, const ChosenValues& chosen,
                          const std::vector<std::string>& head);

struct ScriptFacts {
  std::string name;      ///< of the Slurm job
  std::string job_file;  ///< relative to the folder of the script
  std::string program;   ///< path of altiplano
  int ranks = 1;
};
/// A script for `sbatch`, and for `bash` on one machine: saves before the time is over and requeues itself.
std::string job_script(const ScriptFacts& facts);

}  // namespace altiplano
