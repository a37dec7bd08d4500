#include "framework/runtime/output_folders.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace altiplano {

namespace {

Status check_folder(const Options& options, const char* key, const std::string& folder) {
  const auto refusal = [&](const std::string& why) {
    return invalid_argument("{}: the folder {} cannot be written: {}; set {} to one that can", options.where(key),
                            folder, why, key);
  };
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return refusal(error.message());
  const std::string trial = fmt::format("{}/.trial-{}", folder, ::getpid());
  const int file = ::open(trial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return refusal(std::strerror(errno));
  ::close(file);
  ::unlink(trial.c_str());
  return Status::ok();
}

}  // namespace

Status check_can_write(const Options& options) {
  const std::string run = options.get_string("run.dir");
  ALTIPLANO_RETURN_IF_ERROR(check_folder(options, "run.dir", run));
  ALTIPLANO_RETURN_IF_ERROR(check_folder(options, "run.dir", run + "/logs"));
  return check_folder(options, "checkpoint.dir", options.get_string("checkpoint.dir"));
}

}  // namespace altiplano
