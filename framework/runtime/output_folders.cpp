#include "framework/runtime/output_folders.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "framework/storage/file_kind.hpp"
#include "framework/storage/file_lock.hpp"
#include "framework/storage/input_file.hpp"

namespace altiplano {

namespace {

namespace fs = std::filesystem;

/// Empty: a file can be made in the folder.
std::string why_no_file(const fs::path& folder) {
  const std::string trial = fmt::format("{}/.trial-{}", folder.string(), ::getpid());
  const int file = ::open(trial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return std::strerror(errno);
  ::close(file);
  ::unlink(trial.c_str());
  return {};
}

std::string why_not_made(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? error.message() : why_no_file(folder);
}

/// The same without making the folder: another one is made and removed in the nearest folder that exists.
std::string why_not_possible(const fs::path& folder) {
  std::error_code error;
  fs::path there = fs::absolute(folder, error).lexically_normal();
  for (; !fs::exists(fs::status(there, error)); there = there.parent_path()) {
    const bool is_missing = error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
    if (!is_missing) return error.message();
    if (fs::is_symlink(there, error)) return std::strerror(EEXIST);  // to nothing
  }
  if (!fs::is_directory(there, error)) return std::strerror(ENOTDIR);
  if (fs::equivalent(there, folder, error)) return why_no_file(there);
  const std::string trial = fmt::format("{}/.trial-{}", there.string(), ::getpid());
  if (::mkdir(trial.c_str(), 0700) != 0) return std::strerror(errno);
  ::rmdir(trial.c_str());
  return {};
}

/// Empty: a regular file that can be read and appended to, or nothing that stands in its way.
std::string why_not_appended(const std::string& path) {
  std::error_code error;
  if (!fs::exists(fs::status(path, error))) return {};
  if (const std::string why = why_not_readable(path); !why.empty()) return why;
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return std::strerror(errno);
  ::close(file);
  return {};
}

struct Trial {
  const Options& options;
  RunFolder use;

  Status folder(const char* key, const std::string& path) const {
    const std::string why = use == RunFolder::kUntouched ? why_not_possible(path) : why_not_made(path);
    if (why.empty()) return Status::ok();
    return invalid_argument("{}: the folder {} cannot be written: {}; set {} to one that can", options.where(key), path,
                            why, key);
  }
  /// A folder of something else gets no run into it, and no checkpoints.
  Status kind(const char* key, const std::string& path, FileKind wanted) const {
    const Status right = check_file_kind(path, wanted);
    return right ? right : invalid_argument("{}: {}", options.where(key), right.message());
  }
  Status file(const std::string& path) const {
    const std::string why = why_not_appended(path);
    if (why.empty()) return Status::ok();
    return invalid_argument("{}: the file {} cannot be written: {}; move it away or set run.dir to another folder",
                            options.where("run.dir"), path, why);
  }
};

}  // namespace

Status check_can_write(const Options& options, int ranks, RunFolder use) {
  const Trial trial{options, use};
  const std::string run = options.get_string("run.dir"), logs = run + "/logs",
                    checkpoints = options.get_string("checkpoint.dir");
  if (checkpoints != run) {  // who puts both into one folder may do so
    ALTIPLANO_RETURN_IF_ERROR(trial.kind("run.dir", run, FileKind::kRun));
    ALTIPLANO_RETURN_IF_ERROR(trial.kind("checkpoint.dir", checkpoints, FileKind::kCheckpoints));
  }
  ALTIPLANO_RETURN_IF_ERROR(trial.folder("run.dir", run));
  ALTIPLANO_RETURN_IF_ERROR(trial.folder("run.dir", logs));
  ALTIPLANO_RETURN_IF_ERROR(trial.folder("checkpoint.dir", checkpoints));
  for (const char* name : {"metrics.jsonl", "lock"})
    ALTIPLANO_RETURN_IF_ERROR(trial.file(fmt::format("{}/{}", run, name)));
  for (int rank = 0; rank < ranks; ++rank)
    ALTIPLANO_RETURN_IF_ERROR(trial.file(fmt::format("{}/rank-{}.log", logs, rank)));
  ALTIPLANO_RETURN_IF_ERROR(trial.file(checkpoints + "/.lock"));
  if (use == RunFolder::kTaken) return Status::ok();
  ALTIPLANO_RETURN_IF_ERROR(FileLock::check_free(run + "/lock", "run.dir"));
  return FileLock::check_free(checkpoints + "/.lock", "checkpoint.dir");
}

}  // namespace altiplano
