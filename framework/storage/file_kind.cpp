#include "framework/storage/file_kind.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFirstBytes = 64 << 10;
constexpr std::string_view kHdf5Signature("\x89HDF\r\n\x1a\n", 8), kElfSignature(
                                                                       "\x7f"
                                                                       "ELF");

std::string first_bytes(const std::string& path) {
  std::string bytes(kFirstBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return bytes;
}

/// "train:" or "train.max_steps:" at the beginning of a line.
bool is_key_of_job(std::string_view line) {
  constexpr std::array kSections = {"run", "model", "train", "optimizer", "lr_scheduler", "parallel", "checkpoint"};
  return std::ranges::any_of(kSections, [&](std::string_view section) {
    return line.starts_with(section) && line.size() > section.size() &&
           (line[section.size()] == ':' || line[section.size()] == '.');
  });
}

FileKind kind_of_text(const std::string& text) {
  bool is_job = false;
  for (const std::string& line : split(text, '\n')) {
    const std::string_view key = std::string_view(line).substr(line.starts_with("\xEF\xBB\xBF") ? 3 : 0);
    if (key.starts_with("altiplano_plan:")) return FileKind::kPlan;
    if (key.starts_with("altiplano_cluster:")) return FileKind::kCluster;
    is_job = is_job || is_key_of_job(key);
  }
  return is_job ? FileKind::kJob : FileKind::kText;
}

FileKind kind_of_file(const std::string& path) {
  const std::string bytes = first_bytes(path);
  if (bytes.starts_with(kHdf5Signature)) return FileKind::kData;
  if (bytes.starts_with(kElfSignature)) return FileKind::kProgram;
  if (bytes.empty() || bytes.find('\0') != std::string::npos) return FileKind::kOther;
  return kind_of_text(bytes);
}

bool is_step_folder(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.is_directory(error) && entry.path().filename().string().starts_with("step-");
}

bool has_step_folders(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  return !error && std::any_of(begin(entries), end(entries), is_step_folder);
}

FileKind kind_of_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "manifest.json", error)) return FileKind::kCheckpoint;
  if (has_step_folders(folder)) return FileKind::kCheckpoints;
  const bool is_run = has_step_folders(folder / "checkpoints") || fs::exists(folder / "provenance", error);
  return is_run ? FileKind::kRun : FileKind::kOther;
}

const char* name_of(FileKind kind) {
  constexpr const char* kNames[] = {"something else",          "a job file",    "a plan",    "a cluster file",
                                    "a data file (HDF5)",      "a text",        "a program", "a checkpoint",
                                    "a folder of checkpoints", "a run's folder"};
  return kNames[static_cast<size_t>(kind)];
}

/// The newest of the job files or plans that a run keeps; empty: none.
std::string newest_in_provenance(const std::string& run, const char* name) {
  std::error_code error;
  std::string newest;
  for (fs::directory_iterator at(fs::path(run) / "provenance", error), end; !error && at != end; at.increment(error))
    if (const fs::path file = at->path() / name; fs::exists(file, error)) newest = std::max(newest, file.string());
  return newest;
}

std::string advice_for_run(const std::string& path, FileKind wanted) {
  if (wanted == FileKind::kJob || wanted == FileKind::kPlan) {
    const bool is_job = wanted == FileKind::kJob;
    const std::string kept = newest_in_provenance(path, is_job ? "job.yaml" : "plan.yaml");
    return kept.empty() ? "" : fmt::format("; the {} of its last start is {}", is_job ? "job" : "plan", kept);
  }
  return fmt::format("; its checkpoints are in {}", (fs::path(path) / "checkpoints").string());
}

std::string advice_for(const std::string& path, FileKind found, FileKind wanted) {
  switch (found) {
    case FileKind::kJob:
      return "; give it with -c";
    case FileKind::kPlan:
      return "; give it with --plan";
    case FileKind::kCluster:
      return fmt::format("; give it with --set cluster={}", path);
    case FileKind::kData:
      if (wanted == FileKind::kCheckpoint) return "; a checkpoint is a folder named step-<number>";
      return "; name tokens in a job file, as data.train";
    case FileKind::kText:
      return fmt::format("; make tokens of it: altiplano data pack -o NAME.h5 {}", path);
    case FileKind::kProgram:
      return "; plugins are found in folders given with --plugin-path";
    case FileKind::kCheckpoint:
    case FileKind::kCheckpoints:
      if (wanted == FileKind::kPlan)
        return fmt::format("; altiplano ckpt inspect {} --plan prints the plan in it", path);
      if (wanted == FileKind::kRun) return "; give the folder that a run has for itself";
      return "; give it with --resume or --checkpoint";
    case FileKind::kRun:
      return advice_for_run(path, wanted);
    case FileKind::kOther:
      break;
  }
  return {};
}

/// What readers can tell better: texts that are none of ours, and folders of checkpoints where one of them will do.
bool may_serve(FileKind found, FileKind wanted) {
  if (found == wanted || found == FileKind::kOther) return true;
  if (found == FileKind::kText) return wanted != FileKind::kData;
  if (wanted == FileKind::kText) return found != FileKind::kData && found != FileKind::kProgram;
  return found == FileKind::kCheckpoints && wanted == FileKind::kCheckpoint;
}

}  // namespace

FileKind file_kind_of(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return kind_of_folder(path);
  return fs::is_regular_file(status) ? kind_of_file(path) : FileKind::kOther;
}

Status check_file_kind(const std::string& path, FileKind wanted) {
  const FileKind found = file_kind_of(path);
  if (may_serve(found, wanted)) return Status::ok();
  return invalid_argument("{}: is {}, not {}{}", path, name_of(found), name_of(wanted),
                          advice_for(path, found, wanted));
}

Status check_replaceable(const std::string& path, FileKind own) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) == 0) return Status::ok();
  const FileKind found = file_kind_of(path);
  const bool has_no_kind = found == FileKind::kOther || (own == FileKind::kOther && found == FileKind::kText);
  if (found == own || has_no_kind) return Status::ok();
  return invalid_argument("{}: is {}, which is not replaced; name another file or remove it", path, name_of(found));
}

}  // namespace altiplano
