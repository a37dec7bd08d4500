#include "framework/launch/rank_beats.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "framework/base/console.hpp"
#include "framework/base/text.hpp"

namespace altiplano {
namespace {

/// A supervisor that falls silent may be cut off for a moment. One that is gone, or another, is not looked for.
void beat_until_stopped(const AgentRequest& request, const std::function<void()>& is_over) {
  pollfd stop{request.stop, POLLIN, 0};
  for (;;) {
    const AgentEnd end = send_heartbeats(request);
    if (end == AgentEnd::kOver) is_over();
    if (end != AgentEnd::kSilent) return;
    if (poll(&stop, 1, static_cast<int>(request.interval.count())) > 0) return;
  }
}

}  // namespace

std::string rank_word(const std::string& host, const RankActivity& activity, const RankMotion& motion) {
  return fmt::format("{} {} {} {} {}", host, static_cast<int>(activity.phase), activity.step, motion.moves,
                     motion.waits ? 1 : 0);
}

std::optional<RankNews> parse_rank_word(const std::string& text) {
  const auto words = split(text, ' ');
  if (words.size() != 5 || words[0].empty()) return std::nullopt;
  const auto phase = parse_int(words[1]), step = parse_int(words[2]), waits = parse_int(words[4]);
  if (!phase || *phase < 0 || *phase > static_cast<int>(RankPhase::kDone) || !step || !waits) return std::nullopt;
  RankNews news;
  news.host = words[0];
  news.activity = {static_cast<RankPhase>(*phase), *step};
  news.waits = *waits != 0;
  return news;
}

std::vector<RankNews> news_of_ranks(const HeartbeatServer& server, const std::string& start) {
  std::vector<RankNews> all;
  for (const auto& [rank, word] : server.words_of_ranks(start)) {
    auto news = parse_rank_word(word.text);
    if (!news) continue;
    news->rank = rank;
    news->heard = word.heard;
    news->moved = word.changed;
    all.push_back(std::move(*news));
  }
  return all;
}

std::unique_ptr<RankBeats> RankBeats::start(const RankEnvironment& environment, const std::string& host,
                                            const RankReport& report, std::function<void()> is_over) {
  if (environment.heartbeats.empty() || environment.start_name.empty()) return nullptr;
  AgentRequest request;
  request.address = environment.heartbeats;
  request.secret = environment.secret;
  request.name = fmt::format("{}:{}", environment.start_name, environment.rank);
  request.interval = environment.beat_interval;
  request.deadline = std::chrono::seconds(5);
  request.word = [host, &report] { return rank_word(host, report.activity(), report.motion()); };
  request.stop = eventfd(0, EFD_CLOEXEC);
  if (request.stop < 0) return nullptr;
  const int stop = request.stop;
  return std::unique_ptr<RankBeats>(new RankBeats(std::move(request), std::move(is_over), stop));
}

RankBeats::RankBeats(AgentRequest request, std::function<void()> is_over, int stop)
    : stop_(stop),
      thread_([request = std::move(request), is_over = std::move(is_over)] { beat_until_stopped(request, is_over); }) {}

void RankBeats::kill_this_process() {
  print_err("note: the supervisor has given this start up; the process is killed\n");
  kill(getpid(), SIGKILL);
}

RankBeats::~RankBeats() {
  const uint64_t one = 1;
  const ssize_t written = write(stop_, &one, sizeof(one));
  (void)written;
  thread_.join();
  close(stop_);
}

}  // namespace altiplano
