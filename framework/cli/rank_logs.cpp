#include "framework/cli/rank_logs.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "framework/base/console.hpp"
#include "framework/base/text.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

/// The last line "error: ..." of a rank's log; empty: none.
std::string last_error_of(const std::string& path) {
  constexpr std::string_view kStart = "error: ";
  const auto text = read_file(path);
  if (!text.is_ok()) return {};
  std::string error;
  for (const std::string& line : split(*text, '\n'))
    if (line.starts_with(kStart)) error = line.substr(kStart.size());
  return error;
}

}  // namespace

Result<RankLogs> RankLogs::make(const std::string& run_directory, const std::string& start) {
  RankLogs logs(fmt::format("{}/logs/job-{}", run_directory, start));
  std::error_code error;
  std::filesystem::create_directories(logs.folder_, error);
  if (error) return runtime_failure("{}: cannot be made: {}", logs.folder_, error.message());
  return logs;
}

void RankLogs::follow() {
  std::ifstream file(of_rank(0), std::ios::binary);
  if (!file.seekg(static_cast<std::streamoff>(shown_))) return;
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  shown_ += text.size();
  print_out_text(text);
  flush_out();
}

void RankLogs::tell_errors(int num_ranks, const Story& story) const {
  constexpr size_t kMost = 3;
  std::vector<std::string> told;
  for (int rank = 0; rank < num_ranks && told.size() < kMost; ++rank) {
    const std::string error = last_error_of(of_rank(rank));
    if (error.empty() || std::ranges::find(told, error) != told.end()) continue;
    told.push_back(error);
    story.tell(fmt::format("rank {} said: {}", rank, error));
  }
}

}  // namespace altiplano
