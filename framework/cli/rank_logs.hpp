#pragma once
// RankLogs: what the ranks of one start have printed, <run.dir>/logs/job-<start>/rank-<n>.log, for the supervisor's own
// output and its story.
#include <string>

#include "framework/base/status.hpp"
#include "framework/launch/story.hpp"

namespace altiplano {

class RankLogs {
 public:
  /// Makes the folder.
  static Result<RankLogs> make(const std::string& run_directory, const std::string& start);
  /// Of all ranks; {task} is the rank.
  std::string pattern() const { return folder_ + "/rank-{task}.log"; }
  /// Shows what the first rank has written since the last call.
  void follow();
  bool has_shown_something() const { return shown_ > 0; }
  /// The ranks' own last errors, each once: the first failure is among them.
  void tell_errors(int num_ranks, const Story& story) const;

 private:
  explicit RankLogs(std::string folder) : folder_(std::move(folder)) {}
  std::string of_rank(int rank) const { return fmt::format("{}/rank-{}.log", folder_, rank); }
  std::string folder_;
  size_t shown_ = 0;  ///< bytes
};

}  // namespace altiplano
