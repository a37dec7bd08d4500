#include "framework/storage/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

/// Empty: a regular file.
std::string what_else(fs::file_type type) {
  switch (type) {
    case fs::file_type::regular:
      return {};
    case fs::file_type::directory:
      return "it is a folder";
    case fs::file_type::fifo:
      return "it is a pipe; a regular file is needed";
    case fs::file_type::socket:
      return "it is a socket; a regular file is needed";
    default:
      return "it is a device; a regular file is needed";
  }
}

Status refused(const std::string& path, const std::string& why) {
  return invalid_argument("{}: cannot be read: {}", path, why);
}

}  // namespace

std::string why_not_readable(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);  // before it is opened: opening may wait, or do something
  if (status.type() == fs::file_type::not_found) return std::strerror(ENOENT);
  if (error) return error.message();
  if (std::string what = what_else(status.type()); !what.empty()) return what;
  return ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0 ? "" : std::strerror(errno);
}

Status check_input_file(const std::string& path) {
  const std::string why = why_not_readable(path);
  return why.empty() ? Status::ok() : refused(path, why);
}

Result<std::string> read_input_file(const std::string& path, int64_t most_bytes) {
  ALTIPLANO_RETURN_IF_ERROR(check_input_file(path));
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (!error && bytes > most_bytes)
    return refused(path, fmt::format("it has {} bytes, at most {} are read", bytes, most_bytes));
  auto text = read_file(path, most_bytes);
  if (!text) return invalid_argument("{}", text.status().message());
  return text;
}

}  // namespace altiplano
