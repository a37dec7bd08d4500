#include "framework/launch/start_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"

namespace altiplano {
namespace {

std::string whole_seconds(WatchSpan span) {
  return fmt::format("{:.0f} s", std::chrono::duration<double>(span).count());
}

bool is_in_a_step(const RankNews& rank) {
  return rank.activity.phase == RankPhase::kTraining || rank.activity.phase == RankPhase::kValidating;
}

/// "rank 2 on n3 does nothing for 6 s in step 47"
std::string name_of_standstill(const RankNews& rank, bool is_silent, WatchTime now) {
  const std::string where = to_string(rank.activity);
  return fmt::format("rank {} on {} {} for {}{}{}", rank.rank, rank.host, is_silent ? "says nothing" : "does nothing",
                     whole_seconds(now - (is_silent ? rank.heard : rank.moved)), where.empty() ? "" : " ", where);
}

std::string first_few(std::vector<std::string> names) {
  constexpr size_t kMost = 3;
  const size_t count = names.size();
  if (count > kMost) names.resize(kMost);
  return join(names, "; ") + (count > kMost ? fmt::format("; and {} more", count - kMost) : "");
}

}  // namespace

std::vector<std::string> silent_hosts(const std::vector<std::string>& hosts, const LastHeard& heard,
                                      const std::set<std::string>& lost, WatchTime now, WatchSpan deadline) {
  std::vector<std::string> silent;
  for (const std::string& host : hosts) {
    const auto found = heard.find(host);
    if (!lost.contains(host) && found != heard.end() && now - found->second >= deadline) silent.push_back(host);
  }
  return silent;
}

std::vector<std::string> unheard_hosts(const std::vector<std::string>& hosts, const LastHeard& heard) {
  std::vector<std::string> unheard;
  for (const std::string& host : hosts)
    if (!heard.contains(host)) unheard.push_back(host);
  return unheard;
}

bool is_known_of_all(const std::vector<std::string>& hosts, const LastHeard& heard, const std::set<std::string>& lost,
                     WatchTime since) {
  return std::ranges::all_of(hosts, [&](const std::string& host) {
    const auto found = heard.find(host);
    return lost.contains(host) || (found != heard.end() && found->second > since);
  });
}

std::string standing_still(const std::vector<RankNews>& news, WatchTime now, WatchSpan limit) {
  std::vector<std::string> names;
  size_t waiting = 0;
  for (const RankNews& rank : news) {
    const bool is_silent = now - rank.heard >= limit;
    const bool stands = is_silent || (is_in_a_step(rank) && now - rank.moved >= limit);
    if (stands && (is_silent || !rank.waits)) names.push_back(name_of_standstill(rank, is_silent, now));
    if (stands && rank.waits) ++waiting;
  }
  if (!names.empty()) return first_few(std::move(names));
  if (news.empty() || waiting < news.size()) return {};
  return fmt::format("all {} wait for each other for {} {}", counted(static_cast<int64_t>(news.size()), "rank"),
                     whole_seconds(limit), to_string(news.front().activity));
}

std::string still_there(const std::vector<RankNews>& news, const std::set<std::string>& lost) {
  std::vector<std::string> names;
  for (const RankNews& rank : news)
    if (!lost.contains(rank.host)) names.push_back(fmt::format("rank {} on {}", rank.rank, rank.host));
  return first_few(std::move(names));
}

StartDecision decide_while(const StartView& view, WatchSpan first_word_limit) {
  if (view.is_a_node_lost) return {StartOrder::kEnd, ""};
  if (!view.standing_still.empty()) return {StartOrder::kEnd, view.standing_still};
  if (!view.has_spoken && view.age > first_word_limit)
    return {StartOrder::kEnd, fmt::format("the first rank said nothing for {}", whole_seconds(first_word_limit))};
  if (view.is_stop_heard && !view.is_stop_passed_on) return {StartOrder::kTellToStop, ""};
  return {};
}

}  // namespace altiplano
