#include "framework/config/job_config.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/base/text.hpp"
#include "framework/storage/file_kind.hpp"

namespace altiplano {
namespace {

struct ModelChoice {
  std::string kind;
  std::string where;
  std::vector<std::string> plugin_path;
};

void read_all(OptionReader& reader, const JobSource& source) {
  if (source.text) {
    reader.read_text(*source.text, source.file);
  } else {
    reader.read_file(source.file);
  }
  for (const auto& assignment : source.overrides) reader.read_assignment(assignment);
  for (const auto& [flag, assignment] : source.flags) reader.read_assignment(assignment, flag);
}

/// First reading: only what is needed to find the model's records. Problems show up again in the second.
ModelChoice choose_model(const JobSource& source) {
  OptionReader reader(job_option_records(), job_shorthands(), source.lookup);
  read_all(reader, source);
  const Options& options = reader.options();
  if (!options.has("model.kind")) return {};
  return {options.get_string("model.kind"), options.where("model.kind"), options.get_strings("plugins.path")};
}

}  // namespace

std::vector<OptionRecord> job_records_with_model(std::vector<OptionRecord> model_records) {
  std::vector<OptionRecord> merged;
  for (auto& record : job_option_records()) {
    bool is_kind = record.key == "model.kind";
    merged.push_back(std::move(record));
    if (!is_kind) continue;
    for (auto& own : with_section("model", std::move(model_records))) merged.push_back(std::move(own));
  }
  return merged;
}

std::vector<OptionRecord> with_section(const std::string& section, std::vector<OptionRecord> records) {
  for (auto& record : records) {
    record.key = section + "." + record.key;
    for (auto& alias : record.aliases) alias = section + "." + alias;
  }
  return records;
}

namespace {

/// Refusals that start with a bare key, one that has no place in the file, start with the file's name.
std::string with_file(const JobConfig& job, const std::string& refusals) {
  std::vector<std::string> lines;
  for (const auto& line : split(refusals, '\n')) {
    const bool bare = job.options.find_record(line.substr(0, line.find(':'))) != nullptr;
    lines.push_back(bare ? job.file + ": " + line : line);
  }
  return join(lines, "\n");
}

}  // namespace

Result<JobConfig> load_job_config(const JobSource& source, const ModelRecords& model_records) {
  if (!source.text) ALTIPLANO_RETURN_IF_ERROR(check_file_kind(source.file, FileKind::kJob));
  const ModelChoice choice = choose_model(source);
  Status unknown_model;
  std::vector<OptionRecord> own;
  if (!choice.kind.empty()) {
    auto found = model_records(choice.kind, choice.plugin_path);
    if (found) own = std::move(found).value();
    if (!found) unknown_model = invalid_argument("{}: {}", choice.where, found.status().to_string());
  }
  const bool model_known = !choice.kind.empty() && unknown_model.is_ok();
  OptionReader reader(job_records_with_model(std::move(own)), job_shorthands(), source.lookup);
  reader.accept_foreign(foreign_keys());
  if (!model_known) reader.ignore_unknown_below("model");
  read_all(reader, source);
  reader.check_required(source.file);
  Status status = reader.status();
  if (!unknown_model) {
    std::string more = status ? "" : "\n" + status.message();
    return Status(unknown_model.code(), unknown_model.message() + more);
  }
  ALTIPLANO_RETURN_IF_ERROR(status);
  JobConfig job{std::move(reader.options()), reader.notices(), source.file, reader.text()};
  job.options.derive("run.name", std::filesystem::path(source.file).stem().string(), "from the file's name");
  if (Status refused = check_job(job.options, job.notices, source.uses_validation); !refused)
    return Status(refused.code(), with_file(job, refused.message()));
  return job;
}

Status require_keys(const JobConfig& job, const std::vector<std::string>& keys, const std::string& command) {
  std::vector<std::string> lines;
  for (const auto& key : keys) {
    if (job.options.has(key)) continue;
    lines.push_back(fmt::format("{}: {}: missing; `altiplano {}` needs it", job.file, key, command));
  }
  return lines.empty() ? Status::ok() : Status(StatusCode::kInvalidArgument, join(lines, "\n"));
}

}  // namespace altiplano
