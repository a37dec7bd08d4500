#pragma once
// The job file: its option records, loading, checks across keys, and what commands read from it.
//
// Loading order: the file and the overrides are read once for `model.kind` and `plugins.path`, the caller gives the
// records of that model, then everything is read strictly. All problems are reported at once.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/base/units.hpp"
#include "framework/config/yaml_reader.hpp"
#include "framework/options/option.hpp"

namespace altiplano {

/// Records of every key but the model's own; grouped by section in the order of the reference page.
std::vector<OptionRecord> job_option_records();
std::vector<Shorthand> job_shorthands();
/// All records of a job with this model: the model's own (keys without "model.") behind model.kind.
std::vector<OptionRecord> job_records_with_model(std::vector<OptionRecord> model_records);
/// "train" of "train.max_steps"; a key without section is its own.
std::string section_of(const std::string& key);
/// Records of a plugin with "section." before their keys and aliases.
std::vector<OptionRecord> with_section(const std::string& section, std::vector<OptionRecord> records);

struct JobConfig {
  Options options;                   ///< keys with their section: "train.max_steps"
  std::vector<std::string> notices;  ///< to print once: aliases, harmless oddities
  std::string file;                  ///< as given
  std::string text = {};             ///< of the file, as it was read
};

/// The records of the model plugin `kind` (keys without "model."), found with `plugin_path` searched too.
using ModelRecords = std::function<Result<std::vector<OptionRecord>>(const std::string& kind,
                                                                     const std::vector<std::string>& plugin_path)>;

struct JobSource {
  std::string file;  ///< name for messages; read from disk unless `text` is given
  std::optional<std::string> text = {};
  std::vector<std::string> overrides = {};  ///< "train.max_steps=20"
  /// Options of a command that stand for a key: {"--resume", "train.resume=must"}. Messages name the option.
  std::vector<std::pair<std::string, std::string>> flags = {};
  VariableLookup lookup = environment_variable;
  bool uses_validation = true;  ///< false: the job's own validation data are not used, and not checked
};

Result<JobConfig> load_job_config(const JobSource& source, const ModelRecords& model_records);

/// Fills what follows from other keys (run.dir, checkpoint.dir, lr_scheduler.decay_steps) and checks the rules that
/// need no plan. load_job_config calls it.
Status check_job(Options& options, std::vector<std::string>& notices, bool uses_validation = true);

/// global = micro x accumulation x data_parallel_size.
struct BatchSizes {
  int64_t global = 0;        ///< samples per step
  int64_t micro = 0;         ///< samples per microbatch and replica; 0: the planner chooses
  int64_t accumulation = 0;  ///< microbatches per step and replica; 0: the planner chooses
};
/// Any two of the three give the third. Contradictions are refused with the numbers and the nearest legal values.
Result<BatchSizes> resolve_batch(const Options& options, int64_t data_parallel_size);

/// Refuses unless each key has a value: for keys that only some commands need ("data.train").
Status require_keys(const JobConfig& job, const std::vector<std::string>& keys, const std::string& command);

/// Bytes of memory.per_rank; nothing when auto.
Result<std::optional<Bytes>> memory_per_rank(const Options& options);

struct TimeLimit {
  bool is_none = false;           ///< not even that of the workload manager
  std::optional<Seconds> length;  ///< nothing when auto
};
/// train.time_limit.
Result<TimeLimit> time_limit(const Options& options);

/// Effective values as YAML with dotted keys, which loads again; with origins as comments on request.
std::string job_text(const Options& options, bool with_origins);
/// One value as that text has it.
std::string yaml_value_text(const OptionValue& value);
/// One line per key whose value differs, with both values and origins; empty: none.
std::string config_difference(const Options& first, const Options& second);
/// Markdown tables of the names of other systems, for the end of the reference page.
std::string foreign_key_tables();
/// Markdown reference: one table per section of the job records, and one per model (name to its own records) behind
/// `model`.
std::string reference_page(const std::vector<OptionRecord>& records,
                           const std::map<std::string, std::vector<OptionRecord>>& models);

}  // namespace altiplano
