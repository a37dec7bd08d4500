#pragma once
// What a supervisor decides while a start of the ranks runs: which nodes are gone, whose rank holds the others up,
// whether the start goes on. Pure functions over what was heard and when.
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "framework/launch/rank_board.hpp"

namespace altiplano {

using WatchTime = std::chrono::steady_clock::time_point;
using WatchSpan = std::chrono::steady_clock::duration;
/// When each host was last heard of; those that never were are missing.
using LastHeard = std::map<std::string, WatchTime>;

/// Of `hosts`, those heard of before, but not for `deadline`, and not in `lost` yet.
std::vector<std::string> silent_hosts(const std::vector<std::string>& hosts, const LastHeard& heard,
                                      const std::set<std::string>& lost, WatchTime now, WatchSpan deadline);
/// Of `hosts`, those never heard of.
std::vector<std::string> unheard_hosts(const std::vector<std::string>& hosts, const LastHeard& heard);
/// Whether each of `hosts` was heard of after `since`, or is lost.
bool is_known_of_all(const std::vector<std::string>& hosts, const LastHeard& heard, const std::set<std::string>& lost,
                     WatchTime since);

/// What a rank said of itself last.
struct RankNews {
  int rank = 0;
  std::string host;
  RankActivity activity;
  bool waits = false;    ///< for other ranks
  WatchTime heard = {};  ///< when it last said something
  WatchTime moved = {};  ///< when it had last done something
};

/// Names the ranks that hold the others up for `limit` and longer; empty: there are none. A rank whose process does
/// nothing at all (it is stopped) does so in any phase. One that lives does so in a step or a validation, unless it
/// waits for others; where all wait, for each other, all do. Starting and saving have deadlines of their own.
std::string standing_still(const std::vector<RankNews>& news, WatchTime now, WatchSpan limit);

/// Names the ranks on hosts that are not lost; empty: there are none.
std::string still_there(const std::vector<RankNews>& news, const std::set<std::string>& lost);

/// A start of the ranks, seen from outside.
struct StartView {
  bool is_a_node_lost = false;
  bool is_stop_heard = false;      ///< the job was asked to stop
  bool is_stop_passed_on = false;  ///< and the ranks were
  bool has_spoken = false;         ///< the first rank has written something
  WatchSpan age{};
  std::string standing_still = {};  ///< who, see above
};
enum class StartOrder : uint8_t { kGoOn, kTellToStop, kEnd };
struct StartDecision {
  StartOrder order = StartOrder::kGoOn;
  std::string reason = {};  ///< of an end; empty: it was told already
};
/// `first_word_limit`: for the first rank to say a word.
StartDecision decide_while(const StartView& view, WatchSpan first_word_limit);

}  // namespace altiplano
