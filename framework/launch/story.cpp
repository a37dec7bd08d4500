#include "framework/launch/story.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "framework/base/console.hpp"
#include "framework/base/text.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

std::string story_path(const std::string& run_directory) {
  return run_directory + "/story.log";
}

std::string sign_path(const std::string& run_directory) {
  return run_directory + "/.supervisor";
}

/// Replaces or lengthens a small file by one write.
Status write_at_once(const std::string& path, int how, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0644);
  if (file < 0) return runtime_failure("{}: cannot be written: {}", path, std::strerror(errno));
  const bool is_whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  ::close(file);
  return is_whole ? Status::ok() : runtime_failure("{}: cannot be written: {}", path, std::strerror(error));
}

}  // namespace

Story::Story(const std::string& run_directory, std::string who, bool shows)
    : path_(story_path(run_directory)), who_(std::move(who)), shows_(shows) {}

void Story::tell(const std::string& text) const {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  const std::string line = fmt::format("{:%Y-%m-%d %H:%M:%S} {}: {}\n", local, who_, text);
  if (const Status status = write_at_once(path_, O_APPEND, line); !status) print_err("note: {}\n", status.to_string());
  if (!shows_) return;
  print_out_text(line);
  flush_out();
}

std::vector<std::string> end_of_story(const std::string& run_directory, size_t lines) {
  const auto text = read_file(story_path(run_directory));
  if (!text.is_ok()) return {};
  std::vector<std::string> all = split(trim(*text), '\n');
  if (all.size() > lines) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(lines));
  return all;
}

std::string sign_of_life(const std::string& run_directory) {
  const auto text = read_file(sign_path(run_directory));
  return text.is_ok() ? *text : std::string();
}

Status write_sign_of_life(const std::string& run_directory, const std::string& text) {
  return write_at_once(sign_path(run_directory), O_TRUNC, text + "\n");
}

}  // namespace altiplano
