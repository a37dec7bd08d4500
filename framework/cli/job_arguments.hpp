#pragma once
// The options that every command with a job file has: -c/--config, --set, --plugin-path; and loading that file with the
// records of its model plugin.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/config/job_config.hpp"
#include "framework/storage/file_kind.hpp"

namespace altiplano {

struct JobArguments {
  std::string file;
  std::vector<std::string> overrides;                      ///< "train.max_steps=20"
  std::vector<std::pair<std::string, std::string>> flags;  ///< {"--resume", "train.resume=must"}
  std::vector<std::string> plugin_path;                    ///< folders
  bool uses_validation = true;                             ///< false: the job's own validation data are not needed
};

/// kPositionalToo: `altiplano submit job.yaml` besides `-c job.yaml`.
enum class JobFile : uint8_t { kOption, kPositionalToo };
/// `arguments` must live until the command has run.
void add_job_arguments(CLI::App& command, JobArguments& arguments, JobFile file = JobFile::kOption);
void add_plugin_path_argument(CLI::App& command, JobArguments& arguments);

/// Where training starts and by which plan: options of train and launch.
struct TrainStart {
  std::string resume;     ///< overrides train.resume unless empty
  std::string plan_file;  ///< empty: plan
};
void add_train_start(CLI::App& command, TrainStart& start);
/// The same options for a command that is started.
void add_start_options(std::vector<std::string>& command, const TrainStart& start);

/// What a command writes or reads, for messages: {"--svg", "step.svg"}, {"the job file", "job.yaml"}. An empty path is
/// none.
struct NamedFile {
  std::string name, path;
  FileKind kind = FileKind::kOther;  ///< of an output: what it may replace besides texts and unknown files
};
/// Refuses an output that is one of the inputs or another output, or that would replace a file of another kind.
Status check_output_files(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

/// A word that a shell reads back as this text: as it is where that is safe, else in single quotes.
std::string shell_word(const std::string& text);

/// Puts the folders on the registry's search path.
void use_plugin_path(const std::vector<std::string>& folders);

/// Reads and checks the job file; prints its notices on stderr as "note: ...", unless somebody else does.
Result<JobConfig> load_job(const JobArguments& arguments, bool prints_notices = true);
/// "note: ..." lines on stderr.
void print_notices(const std::vector<std::string>& notices);
/// load_job for training: with `start`, and refused when a key that training needs is missing.
Result<JobConfig> load_training_job(JobArguments arguments, const TrainStart& start, bool prints_notices = true);

}  // namespace altiplano
