#pragma once
// <run.dir>/story.log: what was decided about a run and why, line by line, by whoever decided: the supervisor, or an
// agent that had to requeue the job. One write per line, so that lines of several hosts stay whole.
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

class Story {
 public:
  /// `who`: how its lines begin behind the time: "job 14, start 0 (n1)". `shows`: the lines go to stdout too.
  Story(const std::string& run_directory, std::string who, bool shows);
  void tell(const std::string& text) const;

 private:
  std::string path_, who_;
  bool shows_ = false;
};

/// The last `lines` lines; empty when there is no story.
std::vector<std::string> end_of_story(const std::string& run_directory, size_t lines);

/// <run.dir>/.supervisor, which the supervisor rewrites every second: agents that do not hear of it look there before
/// they take it for dead.
/// What it wrote last; empty: nothing can be read.
std::string sign_of_life(const std::string& run_directory);
Status write_sign_of_life(const std::string& run_directory, const std::string& text);

}  // namespace altiplano
