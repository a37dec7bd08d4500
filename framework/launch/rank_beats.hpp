#pragma once
// RankBeats: a thread of a rank that tells the supervisor again and again what the rank does, as a workload manager's
// launcher does not: a rank that lives and stands still is known by that, and one whose process is stopped by its
// silence. Where the supervisor has given the start up, the process is killed at once: a workload manager may leave it
// half a minute, and the next start would share its memory and its files with it.
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "framework/launch/heartbeat.hpp"
#include "framework/launch/rank_board.hpp"
#include "framework/launch/rank_environment.hpp"
#include "framework/launch/start_watch.hpp"

namespace altiplano {

class RankBeats {
 public:
  /// Null where no supervisor listens. `report` must outlive it.
  /// `is_over`: called by another thread when the supervisor has given the start up.
  static std::unique_ptr<RankBeats> start(const RankEnvironment& environment, const std::string& host,
                                          const RankReport& report, std::function<void()> is_over = kill_this_process);
  ~RankBeats();

 private:
  static void kill_this_process();
  RankBeats(AgentRequest request, std::function<void()> is_over, int stop);
  int stop_;
  std::thread thread_;
};

// What a rank says: "<host> <phase> <step> <moves> <waits>".
std::string rank_word(const std::string& host, const RankActivity& activity, const RankMotion& motion);
/// Host, activity and whether it waits; nothing when it is no such word. The times are the caller's.
std::optional<RankNews> parse_rank_word(const std::string& text);

/// What the ranks of a start have said.
std::vector<RankNews> news_of_ranks(const HeartbeatServer& server, const std::string& start);

}  // namespace altiplano
