#pragma once
// The options that every command with a job file has: -c/--config, --set, --plugin-path; and loading that file with the
// records of its model plugin.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/config/job_config.hpp"

namespace altiplano {

struct JobArguments {
  std::string file;
  std::vector<std::string> overrides;    ///< "train.max_steps=20"
  std::vector<std::string> plugin_path;  ///< folders
};

/// `arguments` must live until the command has run.
void add_job_arguments(CLI::App& command, JobArguments& arguments);
void add_plugin_path_argument(CLI::App& command, JobArguments& arguments);

/// Puts the folders on the registry's search path.
void use_plugin_path(const std::vector<std::string>& folders);

/// Reads and checks the job file; prints its notices on stderr as "note: ...".
Result<JobConfig> load_job(const JobArguments& arguments);

}  // namespace altiplano
